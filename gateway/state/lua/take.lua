-- Test everything, then take everything or nothing.
-- ARGV: now lease reservation, number of holds, (unit amount limit)*, number of charges, (bucket cost capacity)*
-- Returns {1, now, expired, tat*} when granted, {2} when the reservation is open already, and when denied
-- {0, now, expired, 1 for a hold or 2 for a charge, its place from 1, longest wait, in use, tat*}.

local now = clock(number())
local lease, reservation = number(), word()
if redis.call('HEXISTS', HELD, reservation) == 1 then
  return {2}
end
local expired = expire(now)

local holds, lacking, in_use = {}, 0, 0
for place = 1, number() do
  local unit, amount, limit = word(), number(), word()
  holds[#holds + 1] = unit .. ' ' .. text(amount)
  if lacking == 0 and limit ~= '' then
    local used = tonumber(redis.call('HGET', SUMS, unit) or '0')
    if used + amount > tonumber(limit) then
      lacking, in_use = place, used
    end
  end
end

local buckets, costs, before, after = {}, {}, {}, {}
local longest, slowest = 0, 0
for place = 1, number() do
  local bucket, cost, capacity = word(), number(), number()
  local tat = tat_of(bucket)
  local new = math.max(tat, now) + cost
  local wait = new - now - capacity
  if wait > longest then
    longest, slowest = wait, place
  end
  buckets[place], costs[place], before[place], after[place] = bucket, cost, tat, new
end

if lacking > 0 then
  return {0, now, expired, 1, lacking, longest, in_use, unpack(before)}
end
if slowest > 0 then
  return {0, now, expired, 2, slowest, longest, 0, unpack(before)}
end

local charges = {}
for place, bucket in ipairs(buckets) do
  redis.call('HSET', RATES, bucket, text(after[place]))
  charges[place] = bucket .. ' ' .. text(costs[place]) .. ' ' .. text(after[place])
end
open(reservation, table.concat(holds, ' '), table.concat(charges, ' '), now + lease)
keep_held(lease)
if #buckets > 0 then
  keep_rates(now)
  note_charged(reservation, now)
end
return {1, now, expired, unpack(after)}
