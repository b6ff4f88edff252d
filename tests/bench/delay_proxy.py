"""A link that takes time: a TCP proxy that hands every byte on so many seconds later, in order."""

import queue
import socket
import threading
import time

CHUNK = 65536


class DelayProxy:
    """Listens on 127.0.0.1 and forwards to a port there. Use it as a context manager."""

    def __init__(self, port, delay):
        self.delay = delay
        self.target = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            there = socket.create_connection(self.target)
            for one, other in ((client, there), (there, client)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                held = queue.SimpleQueue()
                threading.Thread(target=self._receive, args=(one, held), daemon=True).start()
                threading.Thread(target=self._send, args=(other, held), daemon=True).start()

    def _receive(self, source, held):
        data = b"-"
        while data:
            try:
                data = source.recv(CHUNK)
            except OSError:
                data = b""
            held.put((time.monotonic() + self.delay, data))

    @staticmethod
    def _send(target, held):
        while True:
            due, data = held.get()
            time.sleep(max(due - time.monotonic(), 0))
            try:
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                return


def main():
    """python3 -m bench.delay_proxy PORT SECONDS: prints its own port, ends with its input."""
    import sys

    proxy = DelayProxy(int(sys.argv[1]), float(sys.argv[2]))
    print(proxy.port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
