"""A server made of a recorded exchange: it answers each sync point with the bytes of the real one.

It costs no backend, so that every byte of an exchange can be its end. A client that sends the same
statements again sends as many bytes, so counting them tells whose turn it is.
"""

import socket
import struct
import threading

from . import wire
from .proxy import DOWN, UP

CHUNK = 1 << 16
FOREVER = 1 << 62


class Replay:
    """Listens on construction. `fault` is (action, direction, offset): cut or reset there."""

    def __init__(self, up, down):
        self.found = wire.groups(up, down)
        self.turns = [group.up_end for group in self.found[:-1]]
        self.answers = [down[group.down_start : group.down_end] for group in self.found[:-1]]
        # The name is sent at the start, so that another one would move every byte.
        self.dbname = up.split(b"database\0")[1].split(b"\0")[0].decode()
        self.fault = None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        # An accept() that another thread sits in does not notice a close.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def dsn(self):
        return (
            f"host=127.0.0.1 hostaddr=127.0.0.1 port={self.port} dbname={self.dbname} user=postgres"
            " sslmode=disable gssencmode=disable"
        )

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    self._talk(client)
                except OSError:
                    pass

    def _talk(self, client):
        """Reads and answers until the fault or the client's end."""
        action, direction, offset = self.fault or ("cut", None, 0)
        up_most = offset if direction == UP else FOREVER
        down_left = offset if direction == DOWN else FOREVER
        received = turn = 0
        while received < up_most and down_left > 0:
            chunk = client.recv(min(CHUNK, up_most - received))
            if not chunk:
                return
            received += len(chunk)
            while turn < len(self.turns) and received >= self.turns[turn] and received < up_most:
                answer = self.answers[turn][:down_left]
                client.sendall(answer)
                down_left -= len(answer)
                turn += 1
        if action == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
