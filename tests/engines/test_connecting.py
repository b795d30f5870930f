"""From a client or an address to an engine, and what is said where that fails."""

import contextlib
import socket
import subprocess
import sys
import threading
import time

import pytest
from distributed import Client

import snugly
from snugly.errors import InputError


def refusal(*arguments, **settings):
    with pytest.raises(InputError) as caught:
        snugly.engines.dask(*arguments, **settings)
    return caught.value


def test_an_address_where_nothing_listens_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = refusal(f"tcp://127.0.0.1:{port}")
    assert error.code == "SNG580"
    assert str(port) in str(error)


def test_something_that_listens_but_is_no_scheduler_is_refused():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        assert refusal(f"tcp://127.0.0.1:{mute.getsockname()[1]}").code == "SNG580"


def test_a_greeting_of_another_protocol_is_told_as_such():
    def greet(listening):
        with contextlib.suppress(OSError), listening.accept()[0] as caller:
            caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.socket() as web:
        web.bind(("127.0.0.1", 0))
        web.listen()
        threading.Thread(target=greet, args=(web,), daemon=True).start()
        error = refusal(f"tcp://127.0.0.1:{web.getsockname()[1]}")
    assert error.code == "SNG580"
    assert "no Dask scheduler" in error.hint


def test_a_name_that_no_server_resolves_is_not_waited_for(monkeypatch):
    # GIVEN a system that asks for a name for longer than anybody wants to wait
    asking = threading.Event()

    def ask(*_, **__):
        asking.wait(20)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    begun = time.monotonic()
    # WHEN an engine is asked for THEN it is refused in time
    try:
        error = refusal("tcp://scheduler.example:8786")
        assert time.monotonic() - begun < 5
    finally:
        asking.set()
    assert "name" in error.hint


def test_an_unknown_protocol_is_refused():
    error = refusal("carrier-pigeon://nest")
    assert error.code == "SNG580"
    assert "carrier-pigeon" in error.hint


@pytest.mark.parametrize("what", [5, None, "", b"tcp://x"])
def test_what_is_neither_client_nor_address_is_refused(what):
    assert refusal(what).code == "SNG587"


@pytest.mark.parametrize("patience", [-1, None, "long", float("nan")])
def test_patience_is_a_number_of_seconds(patience):
    with pytest.raises(InputError, match="seconds") as caught:
        snugly.engines.dask("tcp://127.0.0.1:9", patience=patience)
    assert caught.value.code == "SNG587"


def test_an_address_opens_a_client_that_closing_the_engine_closes(cluster):
    with snugly.engines.dask(cluster.scheduler_address) as engine:
        inner = engine.client
        assert len(engine.workers()) == 2
        assert cluster.scheduler_address in engine.title
    assert inner.status == "closed"


def test_a_client_of_the_users_stays_open(cluster):
    with Client(cluster, set_as_default=False) as mine:
        with snugly.engines.dask(mine):
            pass
        assert mine.status == "running"
    assert refusal(mine).code == "SNG580"


def test_loading_engines_loads_no_dask():
    code = "import sys, snugly; snugly.engines; print('dask' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
