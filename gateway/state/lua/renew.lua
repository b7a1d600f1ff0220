-- The leases of these reservations begin anew. ARGV: now lease reservation*
-- Returns {now, the places from 1 of those that had ended already}.

local now = clock(number())
local lease = number()
local reply = {now}
local place = 0
while at < #ARGV do
  local reservation = word()
  place = place + 1
  if redis.call('HEXISTS', HELD, reservation) == 1 then
    redis.call('ZADD', LEASES, text(now + lease), reservation)
  else
    reply[#reply + 1] = place
  end
end
keep_held(lease)
return reply
