-- People who open links: GET of a path and a code, the codes of a file in turn. Arguments: path, file with one code a line.

local codes, count, turn = {}, 0, 0
local before, after

function init(args)
  before, after = "GET " .. args[1], " HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\n\r\n"
  for line in io.lines(args[2]) do
    count = count + 1
    codes[count] = line
  end
end

function request()
  turn = turn % count + 1
  return before .. codes[turn] .. after
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\nJSON {"requests": %d, "seconds": %f, "refused": %d, "broken": %d, "p50": %f, "p99": %f}\n',
    summary.requests, summary.duration / 1e6, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
