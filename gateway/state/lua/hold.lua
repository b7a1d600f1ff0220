-- One replica tells all that it has open of a tenant: that is held, whether or not there is room, and what else the store
-- thinks it holds comes back.
-- ARGV: now lease prefix
--   number, reservation*                      takes under way: left alone
--   number, (reservation holds charges)*      what is open
-- Returns {now, reservations held anew, reservations that came back}.

local now = clock(number())
local lease, prefix = number(), word()
expire(now)

local own = {}
for _ = 1, number() do
  own[word()] = true
end
local anew = 0
for _ = 1, number() do
  local reservation, holds, charges = word(), word(), word()
  own[reservation] = true
  if redis.call('HEXISTS', HELD, reservation) == 1 then
    redis.call('ZADD', LEASES, text(now + lease), reservation)
  else
    open(reservation, holds, charges, now + lease)
    anew = anew + 1
  end
end
local back = 0
for _, reservation in ipairs(redis.call('ZRANGE', LEASES, 0, -1)) do
  if string.sub(reservation, 1, #prefix) == prefix and not own[reservation] then
    close(reservation)
    back = back + 1
  end
end
keep_held(lease)
return {now, anew, back}
