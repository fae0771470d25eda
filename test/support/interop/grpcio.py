"""VLESS over the gRPC stream of this family, with grpcio at one end.

  grpcio.py server PORT PATH UUID CERT KEY        dials what the header asks for
  grpcio.py client SOCKS_PORT PATH UUID CERT NAME SERVER_PORT

The one message is `Hunk { bytes data = 1; }`, encoded by hand. TCP only.
"""

import socket
import socketserver
import struct
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import grpc

READ_BYTES = 64 * 1024
THREADS = 128  # one a stream: more streams than that wait


def encode_hunk(data):
    out, left = bytearray([0x0A]), len(data)
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out) + data


def decode_hunk(message):
    """All `data` of a message; peers may put several into one."""
    out, at = [], 0
    while at < len(message):
        if message[at] != 0x0A:
            raise ValueError(f"tag {message[at]} in a Hunk")
        size = shift = 0
        while True:
            at += 1
            size |= (message[at] & 0x7F) << shift
            shift += 7
            if message[at] < 0x80:
                break
        at += 1
        if at + size > len(message):
            raise ValueError("data beyond its message")
        out.append(message[at : at + size])
        at += size
    return b"".join(out)


def hunks_from(sock):
    while data := read_some(sock):
        yield encode_hunk(data)


def read_some(sock):
    try:
        return sock.recv(READ_BYTES)
    except OSError:
        return b""


def wake(sock):
    """Ends a read that another thread is waiting in."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # closed before


class Bytes:
    """What the messages of a stream hold, as bytes that can be asked for by number."""

    def __init__(self, messages):
        self.messages, self.kept = messages, b""

    def take(self, size):
        while len(self.kept) < size:
            self.kept += decode_hunk(next(self.messages))
        out, self.kept = self.kept[:size], self.kept[size:]
        return out

    def pour(self, sock):
        sock.sendall(self.kept)
        for message in self.messages:
            sock.sendall(decode_hunk(message))


# Request: VER(1)=0 ID(16) A(1) ADDONS(A) CMD(1)=1 PORT(2) ATYP(1) ADDR; answer: VER(1)=0 A(1)=0.
def read_request(source, identity):
    version, found, addons = struct.unpack("!B16sB", source.take(18))
    source.take(addons)
    command, port, kind = struct.unpack("!BHB", source.take(4))
    if version != 0 or found != identity or command != 1 or kind != 1:
        raise ValueError("only TCP of the one user to an IPv4 address is spoken here")
    return socket.inet_ntoa(source.take(4)), port


def serve(port, path, identity, cert, key):
    def tunnel(messages, context):
        source = Bytes(messages)
        far = socket.create_connection(read_request(source, identity))
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context.add_callback(lambda: wake(far))

        def up():
            try:
                source.pour(far)
                far.shutdown(socket.SHUT_WR)
            except Exception:  # the call was cancelled, or the far end is gone: both end the stream
                wake(far)

        threading.Thread(target=up, daemon=True).start()
        yield encode_hunk(b"\0\0")
        yield from hunks_from(far)
        far.close()

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.stream_stream_rpc_method_handler(tunnel) if details.method == path else None

    server = grpc.server(ThreadPoolExecutor(THREADS), handlers=[Handler()])
    with open(key, "rb") as secret, open(cert, "rb") as chain:
        credentials = grpc.ssl_server_credentials([(secret.read(), chain.read())])
    server.add_secure_port(f"127.0.0.1:{port}", credentials)
    server.start()
    server.wait_for_termination()


def dial(socks_port, path, identity, cert, name, server_port):
    with open(cert, "rb") as chain:
        credentials = grpc.ssl_channel_credentials(chain.read())
    options = [("grpc.ssl_target_name_override", name)]
    open_stream = grpc.secure_channel(f"127.0.0.1:{server_port}", credentials, options).stream_stream(path)

    class Client(socketserver.BaseRequestHandler):
        def handle(self):
            near = self.request
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            words = near.makefile("rb", buffering=0)
            if not (greeting := words.read(2)):
                return  # somebody looks whether the port is open
            words.read(greeting[1])
            near.sendall(b"\x05\x00")
            _, command, _, kind, address, port = struct.unpack("!BBBB4sH", words.read(10))
            if command != 1 or kind != 1:
                return near.sendall(b"\x05\x07\x00\x01" + bytes(6))
            near.sendall(b"\x05\x00\x00\x01" + bytes(6))
            request = struct.pack("!B16sBBHB4s", 0, identity, 0, 1, port, 1, address)

            def up():
                yield encode_hunk(request)
                yield from hunks_from(near)

            call = open_stream(up())
            try:
                answer = Bytes(call)
                if answer.take(2) != b"\0\0":
                    raise ValueError("no answer of VLESS")
                answer.pour(near)
            finally:
                wake(near)
                call.cancel()

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True
        request_queue_size = THREADS

    Server(("127.0.0.1", socks_port), Client).serve_forever()


side, port, path, user, *rest = sys.argv[1:]
if side == "server":
    serve(int(port), path, uuid.UUID(user).bytes, *rest)
else:
    cert, name, server_port = rest
    dial(int(port), path, uuid.UUID(user).bytes, cert, name, int(server_port))
