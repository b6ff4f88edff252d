"""A fault proxy: TCP on loopback, in front of a server, unkind at one exact byte of a direction.

One thread serves every connection. It knows nothing of PostgreSQL's protocol; what it recorded
is for others to read.
"""

import collections
import os
import selectors
import socket
import struct
import threading
import time

UP, DOWN = "up", "down"  # from client to server, and back
CHUNK = 1 << 16

# What happens once `offset` bytes have gone in `direction`:
#   cut        both connections are closed, the client's with a FIN
#   reset      both connections are closed, the client's with a RST
#   lose       the server's connection is closed, the client's stays open and silent (half-open)
#   blackhole  nothing goes either way any more, nothing is closed
#   stall      nothing goes in that direction any more, the other goes on
#   delay      each further chunk in that direction waits for `seconds`
Fault = collections.namedtuple("Fault", "action direction offset seconds", defaults=(0.0,))


class Stream:
    """One direction of one connection."""

    def __init__(self, name, source, target):
        self.name, self.source, self.target = name, source, target
        self.pending = collections.deque()  # (not before, bytes)
        self.read = self.sent = 0
        self.ended = False  # the source has said its last
        self.stalled = False


class Link:
    """One client and its connection to the server."""

    def __init__(self, client, server, fault):
        self.client, self.server, self.fault = client, server, fault
        self.streams = {
            UP: Stream(UP, client, server),
            DOWN: Stream(DOWN, server, client),
        }
        self.trace = []  # (direction, bytes) as they came
        self.fired = False
        self.open = True

    def bytes(self, direction):
        return b"".join(data for way, data in self.trace if way == direction)


class Proxy:
    """Listens on construction. Use it as a context manager, or call close()."""

    def __init__(self, upstream, record=False):
        """upstream: a path of a unix socket, or (host, port)."""
        self.upstream = upstream
        self.record = record
        self.fault = None  # for the connections to come
        self.links = []
        self.refuse = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_in, selectors.EVENT_READ, None)
        self._todo = collections.deque()
        self._running = True
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # --- what a test calls ------------------------------------------------------------------

    def dsn(self, dbname, **more):
        """A conninfo through the proxy, in the clear."""
        words = {
            "host": "127.0.0.1",
            "hostaddr": "127.0.0.1",
            "port": self.port,
            "dbname": dbname,
            "user": "postgres",
            "sslmode": "disable",
            "gssencmode": "disable",
        }
        words.update(more)
        return " ".join(f"{key}='{value}'" for key, value in words.items())

    def fault_next(self, action, direction=UP, offset=0, seconds=0.0):
        """The next connection meets that; None for no fault."""
        self.fault = None if action is None else Fault(action, direction, offset, seconds)

    def strike(self, action, direction=DOWN, seconds=0.0):
        """Does it now, to every open connection."""
        self._call(lambda: [self._strike(link, action, direction, seconds) for link in self.links])

    def restore(self):
        """Lets go on what stalls."""
        self._call(self._restore)

    def open_links(self):
        return [link for link in self.links if link.open]

    def settle(self):
        """Waits until what has passed so far is also counted."""
        self._call(lambda: None)

    def strike_link(self, link, action, direction=DOWN):
        """Does it now, to that connection."""
        self._call(lambda: self._strike(link, action, direction, 0.0))

    def forget(self):
        """Closes every connection and drops what was recorded."""
        self._call(lambda: ([self._close(link) for link in self.links], self.links.clear()))

    def close(self):
        if self._running:
            self._running = False
            self._wake_out.send(b"x")
            self._thread.join(10)
            for link in self.links:
                self._close(link)
            for each in (self._listener, self._wake_in, self._wake_out, self._selector):
                each.close()

    # --- the thread's own -------------------------------------------------------------------

    def _call(self, work):
        done = threading.Event()
        self._todo.append((work, done))
        self._wake_out.send(b"x")
        if not done.wait(10):
            raise RuntimeError("the proxy's thread does not answer")

    def _serve(self):
        while self._running:
            for key, events in self._selector.select(self._patience()):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._wake_in:
                    self._wake_in.recv(CHUNK)
                elif key.data.open:
                    self._serve_link(key.data, key.fileobj, events)
            while self._todo:
                work, done = self._todo.popleft()
                work()
                done.set()
            for link in self.links:
                if link.open and any(s.pending for s in link.streams.values()):
                    self._pump(link)

    def _patience(self):
        waits = [
            stream.pending[0][0] - time.monotonic()
            for link in self.links
            if link.open
            for stream in link.streams.values()
            if stream.pending and not stream.stalled
        ]
        return max(0.0, min(waits)) if waits else None

    def _connect(self):
        if isinstance(self.upstream, str):
            server = socket.socket(socket.AF_UNIX)
        else:
            server = socket.socket(socket.AF_INET)
        server.connect(self.upstream)
        return server

    def _accept(self):
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        try:
            if self.refuse:
                raise OSError("refused")
            server = self._connect()
        except OSError:
            client.close()
            return
        for side in (client, server):
            side.setblocking(False)
            if side.family == socket.AF_INET:
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(client, server, self.fault)
        self.links.append(link)
        for side in (client, server):
            self._selector.register(side, selectors.EVENT_READ, link)
        self._check_fault(link)

    def _serve_link(self, link, side, events):
        if events & selectors.EVENT_READ:
            stream = link.streams[UP if side is link.client else DOWN]
            try:
                data = side.recv(CHUNK)
            except BlockingIOError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                stream.ended = True
                self._watch(link, side)
            elif data:
                self._take(link, stream, data)
        self._pump(link)

    def _take(self, link, stream, data):
        if self.record:
            link.trace.append((stream.name, data))
        fault, not_before = link.fault, 0.0
        if fault and fault.action == "delay" and fault.direction == stream.name:
            if stream.read + len(data) > fault.offset:
                not_before = time.monotonic() + fault.seconds
        stream.read += len(data)
        stream.pending.append((not_before, data))

    def _pump(self, link):
        for stream in link.streams.values():
            while link.open and stream.pending and not stream.stalled:
                not_before, data = stream.pending[0]
                if not_before > time.monotonic():
                    break
                room = self._room(link, stream)
                try:
                    sent = stream.target.send(data[:room]) if room else 0
                except BlockingIOError:
                    sent = 0
                except OSError:
                    self._close(link)
                    return
                stream.sent += sent
                if sent < len(data):
                    stream.pending[0] = (not_before, data[sent:])
                else:
                    stream.pending.popleft()
                self._check_fault(link)
                if not sent:
                    break
            if link.open and stream.ended and not stream.pending and not stream.stalled:
                self._close(link)
                return
        if link.open:
            for side in (link.client, link.server):
                self._watch(link, side)

    def _room(self, link, stream):
        """How many bytes may still go before the fault."""
        fault = link.fault
        if fault is None or link.fired or fault.direction != stream.name or fault.action == "delay":
            return CHUNK
        return max(0, fault.offset - stream.sent)

    def _watch(self, link, side):
        """What the selector is to wait for on that side."""
        if not link.open or side.fileno() < 0:
            return
        inbound = link.streams[UP if side is link.client else DOWN]
        outbound = link.streams[DOWN if side is link.client else UP]
        events = 0 if inbound.ended or inbound.stalled else selectors.EVENT_READ
        if outbound.pending and not outbound.stalled and outbound.pending[0][0] <= time.monotonic():
            events |= selectors.EVENT_WRITE
        try:
            known = self._selector.get_key(side).events
        except KeyError:
            known = 0
        if events == known:
            return
        if not events:
            self._selector.unregister(side)
        elif known:
            self._selector.modify(side, events, link)
        else:
            self._selector.register(side, events, link)

    # --- faults -----------------------------------------------------------------------------

    def _check_fault(self, link):
        fault = link.fault
        if fault is None or link.fired or fault.action == "delay":
            return
        if link.streams[fault.direction].sent >= fault.offset:
            link.fired = True
            self._strike(link, fault.action, fault.direction, fault.seconds)

    def _strike(self, link, action, direction, seconds):
        if not link.open:
            return
        if action in ("cut", "reset"):
            self._close(link, reset=action == "reset")
        elif action == "lose":
            self._unregister(link.server)
            link.server.close()
            self._stall(link, UP, DOWN)
        elif action == "blackhole":
            self._stall(link, UP, DOWN)
        elif action == "stall":
            self._stall(link, direction)
        elif action == "delay":
            link.fault = Fault("delay", direction, 0, seconds)
        else:
            raise ValueError(action)

    def _stall(self, link, *directions):
        for direction in directions:
            link.streams[direction].stalled = True
        for side in (link.client, link.server):
            self._watch(link, side)

    def _restore(self):
        for link in self.open_links():
            for stream in link.streams.values():
                stream.stalled = False
            for side in (link.client, link.server):
                self._watch(link, side)

    def _unregister(self, side):
        try:
            self._selector.unregister(side)
        except (KeyError, ValueError):
            pass

    def _close(self, link, reset=False):
        if not link.open:
            return
        link.open = False
        if reset:
            link.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for side in (link.client, link.server):
            self._unregister(side)
            side.close()


def socket_of(cluster):
    """The path of a private cluster's unix socket."""
    return os.path.join(cluster.folder, f".s.PGSQL.{cluster.port}")
