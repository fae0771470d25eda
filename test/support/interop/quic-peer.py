"""aioquic as the other side of QUIC.

server PORT CERTIFICATE KEY [retry] [chacha20]   echoes streams and datagrams
client PORT CERTIFICATE CASE …        runs these cases against an echo server, and prints of each its name or what went wrong
visit PORT CERTIFICATE                asks a web server for / by HTTP/3, and prints the status and the body
http PORT CERTIFICATE PATH [NAME=VALUE …]   posts what standard input has, or gets where that is nothing, and prints
                                      the status and the body in hex
doq PORT CERTIFICATE                  asks what standard input has by DNS over QUIC, again by 0-RTT, and prints the
                                      answer in hex
"""
import asyncio
import os
import socket
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import DatagramFrameReceived, StreamDataReceived
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

HOST = "127.0.0.1"
UNKNOWN_VERSION = 0x1A2A3A4A
DATAGRAM_BYTES = 65_535


class Echo(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            self._quic.send_stream_data(event.stream_id, event.data, event.end_stream)
        elif isinstance(event, DatagramFrameReceived):
            self._quic.send_datagram_frame(event.data)
        self.transmit()


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.datagrams = asyncio.Queue()

    def quic_event_received(self, event):
        super().quic_event_received(event)
        if isinstance(event, DatagramFrameReceived):
            self.datagrams.put_nowait(event.data)

    async def echo(self, size):
        data = os.urandom(size)
        reader, writer = await self.create_stream()
        writer.write(data)
        writer.write_eof()
        assert await reader.read() == data, f"{size} bytes came back changed"


async def run_server(port, certificate, key, retry, suites):
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=["h3"], max_datagram_frame_size=DATAGRAM_BYTES, cipher_suites=suites
    )
    configuration.load_cert_chain(certificate, key)
    tickets = {}
    await serve(
        HOST,
        port,
        configuration=configuration,
        create_protocol=Echo,
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        retry=retry,
    )
    await asyncio.Event().wait()


class Visitor(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.answer = asyncio.get_running_loop().create_future()
        self.status = b""
        self.body = b""

    def ask(self, path, method=b"GET", more=(), body=b""):
        stream = self._quic.get_next_available_stream_id()
        fields = [(b":method", method), (b":scheme", b"https"), (b":authority", b"server.test"), (b":path", path)]
        self.http.send_headers(stream, fields + list(more), end_stream=body == b"")
        if body != b"":
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()

    def quic_event_received(self, event):
        for each in self.http.handle_event(event):
            if isinstance(each, HeadersReceived):
                self.status = dict(each.headers)[b":status"]
            elif isinstance(each, DataReceived):
                self.body += each.data
            if each.stream_ended and not self.answer.done():
                self.answer.set_result(self.status.decode())


async def ask(port, certificate, *what):
    configuration = QuicConfiguration(alpn_protocols=["h3"], server_name="server.test")
    configuration.load_verify_locations(cafile=certificate)
    async with connect(HOST, port, configuration=configuration, create_protocol=Visitor) as visitor:
        visitor.ask(*what)
        return await asyncio.wait_for(visitor.answer, 30), visitor.body


async def visit(port, certificate):
    status, body = await ask(port, certificate, b"/")
    print(status, body.decode())


async def http(port, certificate, path, *fields):
    body = sys.stdin.buffer.read()
    more = [tuple(each.encode().split(b"=", 1)) for each in fields]
    status, answer = await ask(port, certificate, path.encode(), b"GET" if body == b"" else b"POST", more, body)
    print(status, answer.hex())


async def doq(port, certificate):
    configuration = QuicConfiguration(alpn_protocols=["doq"], server_name="server.test")
    configuration.load_verify_locations(cafile=certificate)
    message = sys.stdin.buffer.read()
    tickets = []

    async def ask(is_early):
        options = {"configuration": configuration, "session_ticket_handler": tickets.append}
        async with connect(HOST, port, wait_connected=not is_early, **options) as client:
            reader, writer = await client.create_stream()
            writer.write(len(message).to_bytes(2, "big") + message)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 30)
            assert len(answer) - 2 == int.from_bytes(answer[:2], "big"), "not one whole message"
            while not client._quic._handshake_complete:
                await asyncio.sleep(0.01)
            assert client._quic.tls.early_data_accepted == is_early, "0-RTT was not as it should be"
            return answer[2:]

    answer = await ask(False)
    configuration.session_ticket = tickets[0]
    assert await ask(True) == answer, "another answer by 0-RTT"
    print(answer.hex())


class Cases:
    def __init__(self, port, certificate):
        self.port = port
        self.certificate = certificate
        self.tickets = []

    def connect(self, wait_connected=True, **changes):
        configuration = QuicConfiguration(
            alpn_protocols=["h3"],
            server_name="server.test",
            max_datagram_frame_size=DATAGRAM_BYTES,
            **changes,
        )
        configuration.load_verify_locations(cafile=self.certificate)
        return connect(
            HOST,
            self.port,
            configuration=configuration,
            create_protocol=Client,
            session_ticket_handler=self.tickets.append,
            wait_connected=wait_connected,
        )

    async def transfer(self):
        async with self.connect() as client:
            await asyncio.gather(*(client.echo(size) for size in (1, 100_000, 1_000_000)))

    async def multiplexing(self):
        async with self.connect() as client:
            await asyncio.gather(*(client.echo(64) for _ in range(300)))

    async def chacha20(self):
        async with self.connect(cipher_suites=[CipherSuite.CHACHA20_POLY1305_SHA256]) as client:
            await client.echo(50_000)

    async def versionnegotiation(self):
        versions = [UNKNOWN_VERSION, QuicProtocolVersion.VERSION_1]
        async with self.connect(supported_versions=versions, original_version=UNKNOWN_VERSION) as client:
            await client.echo(1000)
            assert client._quic._version == QuicProtocolVersion.VERSION_1

    async def keyupdate(self):
        async with self.connect() as client:
            for _ in range(3):
                client.request_key_update()
                await client.echo(20_000)

    async def resumption(self):
        self.tickets.clear()
        async with self.connect() as client:
            await client.echo(10)
            assert not client._quic.tls.session_resumed
        assert self.tickets, "no ticket came"
        async with self.connect(session_ticket=self.tickets[0]) as client:
            await client.echo(10)
            assert client._quic.tls.session_resumed, "the session did not go on"

    async def zerortt(self):
        self.tickets.clear()
        async with self.connect() as client:
            await client.echo(10)
        async with self.connect(session_ticket=self.tickets[0], wait_connected=False) as client:
            await asyncio.gather(*(client.echo(size) for size in (1, 20_000, 3)))
            while not client._quic._handshake_complete:
                await asyncio.sleep(0.01)
            assert client._quic.tls.early_data_accepted, "0-RTT was not taken"

    async def retry(self):
        async with self.connect() as client:
            await client.echo(50_000)
            assert client._quic._retry_source_connection_id is not None, "the server did not ask for the address"

    async def datagram(self):
        async with self.connect() as client:
            client._quic.send_datagram_frame(b"there and back")
            client.transmit()
            assert await client.datagrams.get() == b"there and back"

    async def connectionid(self):
        async with self.connect() as client:
            await client.echo(10)
            client.change_connection_id()
            await client.echo(20_000)

    async def rebind(self, source):
        """The same connection from another socket, as behind a NAT that forgets: the server has to follow."""
        async with self.connect() as client:
            await client.echo(1000)
            moved = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            moved.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            moved.bind((source, 0))
            await asyncio.get_running_loop().create_datagram_endpoint(lambda: client, sock=moved)
            await client.echo(200_000)

    async def rebindport(self):
        await self.rebind(f"::ffff:{HOST}")

    async def rebindaddr(self):
        await self.rebind("::ffff:127.0.0.2")


async def run_client(port, certificate, *names):
    cases = Cases(port, certificate)
    for name in names:
        try:
            await asyncio.wait_for(getattr(cases, name)(), 60)
            print(name, flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)


if sys.argv[1] == "server":
    suites = [CipherSuite.CHACHA20_POLY1305_SHA256] if "chacha20" in sys.argv else None
    asyncio.run(run_server(int(sys.argv[2]), sys.argv[3], sys.argv[4], "retry" in sys.argv, suites))
elif sys.argv[1] == "visit":
    asyncio.run(visit(int(sys.argv[2]), sys.argv[3]))
elif sys.argv[1] == "http":
    asyncio.run(http(int(sys.argv[2]), *sys.argv[3:]))
elif sys.argv[1] == "doq":
    asyncio.run(doq(int(sys.argv[2]), sys.argv[3]))
else:
    asyncio.run(run_client(int(sys.argv[2]), *sys.argv[3:]))
