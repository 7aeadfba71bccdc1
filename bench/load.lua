-- The load of a benchmark: POST /messages, one template message a request, spread over the senders in turn; where a body says
-- PHONES, POST /messages/bulk with a hundred recipients a request; where it names no number, POST /contacts, or
-- POST /v2/sms/messages if it has a text, and POST /v2/events if it has an `eventId`.
-- Arguments: token, file with one body a line (PHONE stands for the recipient), last four digits, "keys" or "".

local RECIPIENTS = 100
local heads, tails, count = {}, {}, 0
local before, after
local keys, suffix, turn, run, bulk, path

function init(args)
  suffix, keys = args[3], args[4] == "keys"
  for line in io.lines(args[2]) do
    bulk = string.find(line, '"PHONES"', 1, true)
    path = bulk and "/messages/bulk" or string.find(line, '"numberId"', 1, true) and "/messages"
      or string.find(line, '"text"', 1, true) and "/v2/sms/messages"
      or string.find(line, '"eventId"', 1, true) and "/v2/events" or "/contacts"
    local at = bulk or string.find(line, "PHONE", 1, true)
    count = count + 1
    heads[count] = string.sub(line, 1, at - 1)
    tails[count] = string.sub(line, at + (bulk and 8 or 5))
  end
  before = "POST " .. path .. " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer "
    .. args[1] .. "\r\nContent-Type: application/json\r\n"
  -- Keys and recipients differ between runs, and between the threads of one.
  math.randomseed(tonumber(args[5]))
  turn, run = math.random(0, 999999), args[5]
end

local function phone()
  turn = turn + 1
  return string.format("+55119%06d", turn % 1000000) .. suffix
end

local function phones()
  local all = {}
  for place = 1, RECIPIENTS do
    all[place] = '{"to":"' .. phone() .. '"}'
  end
  return "[" .. table.concat(all, ",") .. "]"
end

function request()
  local recipient = bulk and phones() or phone()
  local sender = (bulk and turn / RECIPIENTS or turn) % count + 1
  sender = sender - sender % 1
  local body = heads[sender] .. recipient .. tails[sender]
  local key = (keys or bulk) and ("Idempotency-Key: " .. run .. "-" .. turn .. "\r\n") or ""
  return before .. key .. "Content-Length: " .. #body .. "\r\n\r\n" .. body
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\nJSON {"requests": %d, "seconds": %f, "refused": %d, "broken": %d, "p50": %f, "p99": %f}\n',
    summary.requests, summary.duration / 1e6, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
