#!/usr/bin/env python3
"""A gateway's memory is bounded, whatever its clients do: those who send and never
read, and those who send half a command and stop. Counted in bytes, not in time."""
import resource
import socket
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

MIB = 1024 * 1024
CLIENTS = 1000
QUIET_ROUNDS = 50  # of 20 ms without a byte taken: the gateway has stopped reading

# gateway/README.md: all buffers, at the mark above which they are cut; requests under way; what one
# turn brings and the links hold.
BUFFERS_MAX = 512 * MIB
REQUESTS_MAX = 256 * MIB
TURN_MAX = 128 * MIB


def crowd(address, count):
    """Connections with small buffers, so that what is not read stays at the gateway."""
    sockets = []
    for _ in range(count):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        s.connect(address)
        s.setblocking(False)
        sockets.append(s)
    return sockets


def close_all(sockets):
    for s in sockets:
        s.close()


def send_some(s, data):
    try:
        return s.send(data)
    except BlockingIOError:
        return 0
    except (ConnectionResetError, BrokenPipeError):
        return 0  # the gateway cut it: that is one of its ways


def push(sockets, messages, watch, endless):
    """Send to each its message (again and again if `endless`) until nobody takes any more.
    Returns (bytes sent, the largest value of watch() on the way)."""
    at = [0] * len(sockets)
    sent = 0
    quiet = 0
    most = 0

    def round_of_sends():
        nonlocal sent, quiet, most
        before = sent
        for i, s in enumerate(sockets):
            message = messages[i % len(messages)]
            if at[i] == len(message) and endless:
                at[i] = 0
            count = send_some(s, message[at[i] :]) if at[i] < len(message) else 0
            at[i] += count
            sent += count
        most = max(most, watch())
        quiet = 0 if sent > before else quiet + 1
        return quiet >= QUIET_ROUNDS

    until("the gateway to stop reading", round_of_sends, deadline=120)
    return sent, most


def serves(address):
    """Another client is served as if nothing was."""
    redis = Resp(address)
    for i in range(100):
        assert redis("CALL", f"good{i}", "hello") == "hello"
    redis.close()


def start_gateway(fleet):
    fleet.coordinators(1)
    fleet.node("n1", ["--actor", "echo"])
    # Under the address sanitizer freed memory is kept for a while; that is not the gateway's.
    # A request that waits behind those of a thousand clients has its time, on a slow machine as well.
    return fleet.gateway("g1", ["--deadline-ms", "60000"], env={"ASAN_OPTIONS": "quarantine_size_mb=8"})


def a_thousand_clients_that_never_read(binary):
    with Fleet(binary) as fleet:
        gateway = start_gateway(fleet)
        serves(gateway.resp)
        base = gateway.rss()
        sockets = crowd(gateway.resp, CLIENTS)
        messages = [
            Resp.encode(("CALL", f"lazy{i}", "x" * 1000)) * 64 for i in range(CLIENTS)
        ]
        sent, most = push(sockets, messages, gateway.rss, endless=True)
        serves(gateway.resp)
        print(f"# {CLIENTS} clients sent {sent // MIB} MiB, read nothing; gateway grew by "
              f"{(most - base) // MIB} MiB")
        assert sent > CLIENTS * 65536, sent
        assert most - base < BUFFERS_MAX + REQUESTS_MAX + TURN_MAX, most
        close_all(sockets)
        serves(gateway.resp)
        redis = Resp(gateway.resp)
        until(
            "the buffers of those who went are gone, too",
            lambda: int(redis("INFO", "clients").split("client_buffers:")[1].split()[0]) < MIB,
        )


def a_client_that_stops_in_the_middle_of_a_command(binary):
    with Fleet(binary) as fleet:
        gateway = start_gateway(fleet)
        serves(gateway.resp)
        base = gateway.rss()
        half = Resp.encode(("CALL", "half", "x" * 1000000))[:-500000]
        sockets = crowd(gateway.resp, 1)
        sockets[0].setblocking(True)
        sockets[0].sendall(half)
        serves(gateway.resp)
        grown = gateway.rss() - base
        assert grown < 8 * MIB, grown
        serves(gateway.resp)
        # The rest of it comes, and it is run.
        rest = Resp.encode(("CALL", "half", "x" * 1000000))[-500000:]
        sockets[0].sendall(rest)
        assert sockets[0].recv(10) == b"$1000000\r\n"
        close_all(sockets)


def a_thousand_clients_that_stop_in_the_middle(binary):
    with Fleet(binary) as fleet:
        gateway = start_gateway(fleet)
        serves(gateway.resp)
        base = gateway.rss()
        half = Resp.encode(("CALL", "half", "x" * 1000000))[:-1000]
        sockets = crowd(gateway.resp, CLIENTS)
        sent, most = push(sockets, [half], gateway.rss, endless=False)
        serves(gateway.resp)
        print(f"# {CLIENTS} clients sent {sent // MIB} MiB of half commands; gateway grew by "
              f"{(most - base) // MIB} MiB")
        assert most - base < BUFFERS_MAX, most - base
        close_all(sockets)


soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
main(
    [
        a_thousand_clients_that_never_read,
        a_client_that_stops_in_the_middle_of_a_command,
        a_thousand_clients_that_stop_in_the_middle,
    ]
)
