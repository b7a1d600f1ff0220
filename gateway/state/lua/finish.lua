-- End reservations: what they held comes back. A settled one's charges become what was used, a released one's stay, one
-- that was never used ("void") gives them back as far as they have not drained. The first end wins.
-- ARGV: now, (reservation kind, number of costs, cost*)* with kind settle, release or void (no costs)
-- Returns 1 or 0 for each: whether it was open until now.

local now = clock(number())
local ended = {}
while at < #ARGV do
  local reservation, kind = word(), word()
  local costs = {}
  for place = 1, number() do
    costs[place] = number()
  end
  local charges = close(reservation)
  redis.call('ZREM', CHARGED, reservation)
  ended[#ended + 1] = charges and 1 or 0
  if charges and kind ~= 'release' then
    local place = 0
    for bucket, cost, tat in string.gmatch(charges, '(%S+) (%S+) (%S+)') do
      place = place + 1
      correct(bucket, tonumber(cost), tonumber(tat), costs[place] or 0, now)
    end
  end
end
keep_rates(now)
return ended
