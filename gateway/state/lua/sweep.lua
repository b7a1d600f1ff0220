-- End the leases that are over. ARGV: now
-- Returns {now, the reservations that ended}.

local now = clock(number())
local reply = {now}
for _, reservation in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', text(now))) do
  reply[#reply + 1] = reservation
end
expire(now)
return reply
