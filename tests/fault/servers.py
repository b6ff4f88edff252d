"""Servers that are none: one that never answers, one that refuses with a SQLSTATE of the test's."""

import contextlib
import socket
import struct
import threading


@contextlib.contextmanager
def deaf():
    """The port of a host that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


def closed_port():
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def error_response(sqlstate, message, severity="FATAL"):
    fields = f"S{severity}\0V{severity}\0C{sqlstate}\0M{message}\0Fnowhere.c\0L1\0Rnobody\0\0"
    return b"E" + struct.pack("!I", 4 + len(fields)) + fields.encode()


class Refuser:
    """Answers every startup packet with an error and closes. Use it as a context manager."""

    def __init__(self, sqlstate, message):
        self.answer = error_response(sqlstate, message)
        self.served = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.recv(4096)
                client.sendall(self.answer)
                self.served += 1


def conninfo(port, **more):
    """A conninfo for one of the above, or for a list of ports."""
    ports = port if isinstance(port, (list, tuple)) else [port]
    words = {
        "host": ",".join(["127.0.0.1"] * len(ports)),
        "hostaddr": ",".join(["127.0.0.1"] * len(ports)),
        "port": ",".join(str(each) for each in ports),
        "user": "postgres",
        "dbname": "postgres",
        "sslmode": "disable",
        "gssencmode": "disable",
    }
    words.update(more)
    return " ".join(f"{key}='{value}'" for key, value in words.items())
