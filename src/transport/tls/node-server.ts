/** The accepting side of TLS by `node:tls`, over any stream. */
import type { Duplex } from "node:stream";
import { TLSSocket, type SecureContext } from "node:tls";
import type { TlsServerOptions } from "#core/tls.ts";
import { openRecordPump, type RecordPump } from "./record-pump.ts";
import type { HandshakeFacts, Handshake } from "./server-handshake.ts";

/** What is built over each stream. */
export function nodeAcceptor(options: Pick<TlsServerOptions, "alpn" | "clientAuthType">) {
  const tlsOptions = {
    isServer: true,
    ...(options.alpn.length === 0 ? {} : { ALPNProtocols: [...options.alpn] }),
    requestCert: options.clientAuthType !== "",
    rejectUnauthorized: false, // checked after the handshake, so that the client gets an orderly end
  };
  return (below: Duplex, secureContext: SecureContext, bypassable: boolean): Handshake => {
    const pump = bypassable ? openRecordPump(below) : null;
    const wire = pump?.wire ?? below;
    const stream = new TLSSocket(wire, { ...tlsOptions, secureContext });
    wire.on("error", (error) => stream.destroy(error));
    return { stream, below: wire, isDone: false, facts: () => factsOf(stream, pump) };
  };
}

function factsOf(socket: TLSSocket, pump: RecordPump | null): HandshakeFacts {
  // Only `tls.Server` clears this, and HTTP/2 waits for it.
  Object.assign(socket, { secureConnecting: false });
  return {
    alpn: socket.alpnProtocol || null,
    serverName: sniOf(socket),
    bypass: socket.getProtocol() === "TLSv1.3" ? pump : null,
    client: { given: socket.getPeerX509Certificate() !== undefined, refusal: verifyError(socket) },
  };
}

function sniOf(socket: TLSSocket): string | null {
  const { servername }: TLSSocket & { servername?: string | false | null } = socket;
  return typeof servername === "string" && servername !== "" ? servername.toLowerCase() : null;
}

/** What the library knows of the client's certificate. Only `tls.Server` reads it into `authorized`, so it is read here. */
function verifyError(socket: TLSSocket): string | null {
  const { ssl }: TLSSocket & { ssl?: { verifyError?(): Error | null | undefined } } = socket;
  if (typeof ssl?.verifyError !== "function") return "the runtime does not tell"; // closed, not open
  return ssl.verifyError()?.message ?? null;
}
