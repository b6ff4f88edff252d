"""The bench at small sizes: every row runs, both sides delete the same rows, and counts stay in bounds.

Never a time: that is for tests/bench/run on a quiet machine.
"""

import pytest

from bench import main, server
from bench.delay_proxy import DelayProxy


@pytest.fixture(scope="module")
def bench():
    with server.Server() as running:
        yield running


def run(bench, name):
    row = main.run(bench, {name: main.SMOKE}, lambda text: None)[0]
    assert row.id == name and row.reached
    return row.numbers


def test_idle_cycle_is_bounded(bench):
    numbers = run(bench, "P1")
    assert numbers["round_trips"] <= 25
    assert numbers["buffers_a_queue"] <= 16


def test_small_partitions_share_round_trips(bench):
    numbers = run(bench, "P5")
    assert numbers["round_trips"] < numbers["partitions"] / 2


def test_step_buffers_follow_the_batch(bench):
    numbers = run(bench, "P6")
    assert numbers["buffers_a_row"] <= 10
    assert numbers["step_buffers"] <= 20 * numbers["batch"]


def test_dead_index_entries_are_not_read_again(bench):
    assert run(bench, "P7")["ratio"] <= 2


@pytest.mark.parametrize("name", ["P2", "P3", "P4", "P8", "P9", "P10", "P11"])
def test_row_runs(bench, name):
    run(bench, name)


def test_delay_proxy_keeps_order():
    import socket
    import threading

    sent = bytes(range(256)) * 400
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def echo():
            connection = listener.accept()[0]
            with connection:
                while data := connection.recv(1000):
                    connection.sendall(data)

        threading.Thread(target=echo, daemon=True).start()
        with DelayProxy(listener.getsockname()[1], 0.001) as proxy:
            with socket.create_connection(("127.0.0.1", proxy.port)) as client:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                received = b""
                while data := client.recv(65536):
                    received += data
    assert received == sent


def test_results_name_every_row(bench):
    rows = [main.Row(name, "what", "figure", "reached", True, ["a note"]) for name in main.ROWS]
    text = main.results(rows, server.facts(bench))
    assert all(f"| {name} | what | figure | reached | yes |" in text for name in main.ROWS)
