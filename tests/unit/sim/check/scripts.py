"""Histories as text, one completed operation a line.

p1 ok send x:a@0 x:b@1       key x, values a and b, at offsets 0 and 1
p1 info send x:c             nobody knows
p2 ok poll x:a@0 x:b@1 ~x    a rebalance touched x meanwhile
p3 ok txn x:a@0 < y:b@4      sent to x, read from y
p2 ok assign x y             polls these from now on
p2 ok take x:b@1             handed to a member of a share group
p2 ok acknowledge x:b@1      which is done with it
p1 begins                    p1's next line was invoked here; without it, an operation takes no time
"""

from penstock.sim.check.history import Accept, History, Poll, Send


def history(text):
    recorded = History()
    lines = [line.split() for line in text.strip().splitlines()]
    opened = set()
    for number, (process, what, *rest) in enumerate(lines):
        if what == "begins":
            _, _, *rest = next(line for line in lines[number + 1 :] if line[0] == process)
            invoke(recorded, process, number, rest)
            opened.add(process)
            continue
        if process not in opened:
            invoke(recorded, process, number, rest)
        opened.discard(process)
        function, *words = rest
        rebalanced = [word[1:] for word in words if word.startswith("~")]
        recorded.complete(process, what, number, micros(function, words), rebalanced)
    return recorded


def invoke(recorded, process, time_ns, rest):
    function, *words = rest
    intended = [one for one in micros(function, words) if isinstance(one, Send)]
    keys = words if function in ("assign", "subscribe") else ()
    recorded.invoke(process, function, time_ns, [Send(one.key, one.value) for one in intended], keys)


def micros(function, words):
    if function in ("assign", "subscribe", "crash"):
        return []
    if function == "acknowledge":
        return [Accept(key, offset) for key, _, offset in map(parts, words)]
    sending = function not in ("poll", "take")
    found = []
    polled = {}
    for word in words:
        if word == "<":
            sending = False
        elif not word.startswith("~"):
            key, value, offset = parts(word)
            if sending:
                found.append(Send(key, value, offset))
            else:
                polled.setdefault(key, []).append((offset, value))
    return found if sending else [*found, Poll(polled)]


def parts(word):
    key, _, rest = word.partition(":")
    value, at, offset = rest.partition("@")
    return key, value, int(offset) if at else None
