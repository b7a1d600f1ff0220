-- The registry of replicas: this one is alive, those that fell silent are forgotten.
-- KEYS: the registry, a sorted set of replica -> microsecond at which it counts as gone. ARGV: replica, lifetime in
-- microseconds. Returns {now, living replicas}. The server's clock is the only one.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local lifetime = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('ZADD', KEYS[1], string.format('%.0f', now + lifetime), ARGV[1])
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(lifetime / 500)))
return {now, redis.call('ZCARD', KEYS[1])}
