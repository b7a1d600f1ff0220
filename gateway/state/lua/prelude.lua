-- Put before every script of a tenant's budgets. All keys of a tenant share the hash slot {tenant}:
--   KEYS[1] leases  sorted set  reservation -> microsecond at which its lease is over
--   KEYS[2] held    hash        reservation -> "unit amount ...|bucket cost tat ..."
--   KEYS[3] sums    hash        unit -> what is in flight
--   KEYS[4] rates   hash        bucket -> theoretical arrival time, microseconds (gateway/quota/gcra.py)
--   KEYS[5] charged sorted set  reservation whose charges nothing has settled -> microsecond of its take
-- All numbers are whole and below 2^53, so the doubles that Lua counts in are exact.

local LEASES, HELD, SUMS, RATES, CHARGED = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local at = 0
local function word()
  at = at + 1
  return ARGV[at]
end
local function number()
  return tonumber(word())
end
local function text(value)
  return string.format('%.0f', value)
end

-- The server's clock was set back, or another server with an earlier one has taken over. Debts and leases were told by
-- the later time; they move with it, since nobody may wait for that time to come again. What replicas told of a loss
-- before is told by it too, and is forgotten.
local CLOCK, STEP_US = '@clock', 1000000
local function set_back(by)
  local fields = redis.call('HGETALL', RATES)
  for place = 1, #fields, 2 do
    local name, value = fields[place], fields[place + 1]
    if string.sub(name, 1, 1) ~= '@' then
      redis.call('HSET', RATES, name, text(math.max(0, tonumber(value) - by)))
    elseif name == '@lost' or string.sub(name, 1, 6) == '@base/' then
      redis.call('HDEL', RATES, name)
    end
  end
  local leases = redis.call('ZRANGE', LEASES, 0, -1, 'WITHSCORES')
  for place = 1, #leases, 2 do
    redis.call('ZADD', LEASES, text(tonumber(leases[place + 1]) - by), leases[place])
  end
end

-- One clock for all replicas: the server's own, unless the caller brings a time. Only the former is kept in mind, beside
-- the buckets it was used for.
local is_own_clock = false
local function clock(given)
  if given > 0 then
    return given
  end
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local last = tonumber(redis.call('HGET', RATES, CLOCK) or '0')
  if last - now > STEP_US then
    set_back(last - now)
    redis.call('HSET', RATES, CLOCK, text(now))
  end
  is_own_clock = true
  return now
end

local function tat_of(bucket)
  return tonumber(redis.call('HGET', RATES, bucket) or '0')
end
local function charge(bucket, now, cost)
  local tat = math.max(tat_of(bucket), now) + cost
  redis.call('HSET', RATES, bucket, text(tat))
  return tat
end

-- What a reservation was charged becomes `cost`: an extra is always taken, a surplus comes back as far as it has not
-- drained. Buckets that are gone have drained.
local function correct(bucket, charged_cost, charged_tat, cost, now)
  local surplus = charged_cost - cost
  if surplus < 0 then
    charge(bucket, now, -surplus)
  elseif surplus > 0 then
    local tat = redis.call('HGET', RATES, bucket)
    if tat then
      local back = math.min(surplus, math.max(0, charged_tat - now))
      redis.call('HSET', RATES, bucket, text(tonumber(tat) - back))
    end
  end
end

local function add_holds(holds, sign)
  for unit, amount in string.gmatch(holds, '(%S+) (%S+)') do
    if tonumber(amount) ~= 0 and redis.call('HINCRBY', SUMS, unit, text(sign * tonumber(amount))) == 0 then
      redis.call('HDEL', SUMS, unit)
    end
  end
end

local function open(reservation, holds, charges, expires)
  redis.call('ZADD', LEASES, text(expires), reservation)
  redis.call('HSET', HELD, reservation, holds .. '|' .. charges)
  add_holds(holds, 1)
end

-- Gives back what a reservation holds; its charges as text, or nil when it had ended already.
local function close(reservation)
  local record = redis.call('HGET', HELD, reservation)
  if not record then
    return nil
  end
  redis.call('HDEL', HELD, reservation)
  redis.call('ZREM', LEASES, reservation)
  local bar = string.find(record, '|', 1, true)
  add_holds(string.sub(record, 1, bar - 1), -1)
  return string.sub(record, bar + 1)
end

local function expire(now)
  local over = redis.call('ZRANGEBYSCORE', LEASES, '-inf', text(now))
  for _, reservation in ipairs(over) do
    close(reservation)
  end
  return #over
end

-- Nothing stays behind: what is held is forgotten two leases after the last sign of life, a bucket a minute after it
-- has drained.
local function keep_held(lease)
  local ms = text(math.ceil(lease / 500))
  redis.call('PEXPIRE', LEASES, ms)
  redis.call('PEXPIRE', HELD, ms)
  redis.call('PEXPIRE', SUMS, ms)
end
local function keep_rates(now)
  local latest = 0
  for _, tat in ipairs(redis.call('HVALS', RATES)) do
    latest = math.max(latest, tonumber(tat))
  end
  if latest == 0 then
    return
  end
  if is_own_clock then
    redis.call('HSET', RATES, CLOCK, text(now))
  end
  local ms = math.ceil(math.max(0, latest - now) / 1000) + 60000
  if redis.call('PTTL', RATES) < ms then
    redis.call('PEXPIRE', RATES, text(ms))
  end
end

-- A lease may end before its replica has heard that it was granted: the charge outlasts the hold, and so must the memory
-- of it, else the replica's own word would charge it again. It goes with the rates: what is charged again after they have
-- drained, at its own time, has drained as well. Of a bucket that is never idle an hour is remembered.
local CHARGED_US = 3600000000
local function note_charged(reservation, now)
  redis.call('ZREMRANGEBYSCORE', CHARGED, '-inf', text(now - CHARGED_US))
  redis.call('ZADD', CHARGED, text(now), reservation)
  redis.call('PEXPIRE', CHARGED, text(redis.call('PTTL', RATES)))
end
