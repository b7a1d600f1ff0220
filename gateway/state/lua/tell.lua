-- One replica tells what was charged while it could not reach the store, at the times at which it was. Telling the same
-- again (the same `seq`, or an earlier one) charges nothing.
-- ARGV: now replica seq
--   number, (bucket tat time)*                buckets as last seen, and when; they count where the store lost them
--   number, (bucket added floor)*             charges as one function: tat' = max(tat + added, floor)
--   number, (reservation number (bucket cost time)*)*   takes whose answer never came: charged if they were not yet
-- Returns {now}.

local now = clock(number())
local mark, seq = '@' .. word(), number()

-- A bucket that is not full and not there was lost. From then on what was seen of any bucket before counts: the first to
-- remember lays a base, who remembers more lifts it and all that was charged on top of it since.
local lost_at = tonumber(redis.call('HGET', RATES, '@lost') or '0')
for _ = 1, number() do
  local bucket, tat, seen_at = word(), number(), number()
  local base_name = '@base/' .. bucket
  local is_here = redis.call('HEXISTS', RATES, bucket) == 1
  if tat > now and (not is_here or (lost_at > 0 and seen_at < lost_at)) then
    local base = tonumber(redis.call('HGET', RATES, base_name) or '0')
    if base > 0 and is_here then
      redis.call('HSET', RATES, bucket, text(tat_of(bucket) + math.max(0, tat - base)))
    else
      redis.call('HSET', RATES, bucket, text(math.max(tat_of(bucket), tat)))
    end
    redis.call('HSET', RATES, base_name, text(math.max(base, tat)))
    if lost_at == 0 then
      lost_at = now
      redis.call('HSET', RATES, '@lost', text(now))
    end
  end
end

local is_new = seq > tonumber(redis.call('HGET', RATES, mark) or '0')
local is_charged = false
for _ = 1, number() do
  local bucket, added, floor = word(), number(), number()
  if is_new then
    redis.call('HSET', RATES, bucket, text(math.max(tat_of(bucket) + added, floor)))
    is_charged = true
  end
end
for _ = 1, number() do
  local is_known = redis.call('ZSCORE', CHARGED, word())
  for _ = 1, number() do
    local bucket, cost, time = word(), number(), number()
    if is_new and not is_known then
      charge(bucket, time, cost)
    end
    is_charged = is_new
  end
end
if is_charged then
  redis.call('HSET', RATES, mark, text(seq))
end
keep_rates(now)
return {now}
