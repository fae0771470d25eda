/** HTTPS: HTTP/2 and HTTP/1.1, client certificates, and certificates that change while it runs. */
import { constants } from "node:crypto";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import { createSecureContext, type SecureContextOptions, type TLSSocket } from "node:tls";
import { SESSION_BOUNDS } from "#lib/http2-server.ts";
import { maxHeaderSize } from "#lib/node-http.ts";
import { messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import { SERVER_LIMITS, type Serve } from "./listeners.ts";
import { isWebSocketRequest } from "./upgrade.ts";

export type ClientAuthType = "" | "request" | "require-any" | "verify-if-given" | "require-and-verify";

export interface TlsOptions {
  /** PEM text, or the path of a file that holds it; files are watched. */
  readonly certificate: string;
  readonly privateKey: string;
  readonly clientAuthType: ClientAuthType;
  /** The CA of clients; "" without one. Set while the type is "": as require-and-verify. */
  readonly clientAuthCert: string;
  readonly files: SafeFiles;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;
const IDLE_SESSION_MS = 120_000;
const MAX_STREAMS_PER_SESSION = 100;

export interface TlsServer extends Disposable {
  readonly server: Http2SecureServer;
}

/** Throws `ConfigError` or what OpenSSL says about the certificate. Disposing ends the watching, not the server. */
export async function openTlsServer(options: TlsOptions, serve: Serve, log: Log): Promise<TlsServer> {
  const auth =
    options.clientAuthType === "" && options.clientAuthCert !== ""
      ? "require-and-verify"
      : options.clientAuthType;
  const server = createSecureServer(
    {
      ...SERVER_LIMITS,
      ...SESSION_BOUNDS,
      ...(await contextOf(options)),
      allowHTTP1: true,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      settings: { maxConcurrentStreams: MAX_STREAMS_PER_SESSION, maxHeaderListSize: maxHeaderSize },
      requestCert: auth !== "",
      rejectUnauthorized: auth === "require-and-verify",
    },
    serve as never, // HTTP/2 requests come in the compatible classes
  );
  Object.assign(server, { shouldUpgradeCallback: isWebSocketRequest }); // no option of this kind of server
  server.prependListener("secureConnection", (socket) => {
    socket.on("error", () => socket.destroy()); // a fault of one client ends its connection alone
    if (!isAcceptable(socket, auth)) socket.destroy();
  });
  server.on("session", closeWhenIdle);
  return { server, [Symbol.dispose]: watch(options, server, log) };
}

/** What the type asks for; a certificate that has to verify never counts when it did not. */
function isAcceptable(socket: TLSSocket, auth: ClientAuthType): boolean {
  if (auth === "" || auth === "request") return true;
  const isGiven = Object.keys(socket.getPeerCertificate()).length > 0;
  if (auth === "require-any") return isGiven;
  if (auth === "verify-if-given") return !isGiven || socket.authorized;
  return socket.authorized;
}

async function contextOf(options: TlsOptions): Promise<SecureContextOptions> {
  const { certificate, privateKey, clientAuthCert, files } = options;
  const [cert, key] = await Promise.all([files.readPem(certificate), files.readPem(privateKey)]);
  return {
    cert,
    key,
    minVersion: "TLSv1.2",
    ...(clientAuthCert === "" ? {} : { ca: await files.readPem(clientAuthCert) }),
    // a resumed session does not show the client's certificate again, so every connection shows it anew
    ...(options.clientAuthType === "" && clientAuthCert === ""
      ? {}
      : { secureOptions: constants.SSL_OP_NO_TICKET }),
  };
}

/** Key and certificate change one after the other: a pair that does not fit is passed over until it does. */
function watch(options: TlsOptions, server: Http2SecureServer, log: Log): () => void {
  let last = Promise.resolve();
  const load = async (): Promise<void> => {
    try {
      const context = await contextOf(options);
      createSecureContext(context); // throws where they do not fit; the server would be left without either
      server.setSecureContext(context);
      log.info("controller: new TLS certificate in use");
    } catch (error) {
      log.warning(`controller: the changed TLS certificate is not usable yet: ${messageOf(error)}`);
    }
  };
  const reload = (): void => {
    last = last.then(load); // in turn: what was read first must not come into force last
  };
  const { certificate, privateKey, clientAuthCert, files } = options;
  const pems = new Set([certificate, privateKey, clientAuthCert].filter((pem) => pem !== ""));
  const watches = [...pems].map((pem) => files.watchPem(pem, reload));
  return () => {
    for (const each of watches) each[Symbol.dispose]();
  };
}

function closeWhenIdle(session: ServerHttp2Session): void {
  let streams = 0;
  session.on("error", () => session.destroy()); // this client's fault
  session.on("stream", (stream) => {
    streams++;
    stream.on("close", () => streams--);
  });
  session.setTimeout(IDLE_SESSION_MS, () => {
    if (streams === 0) session.close();
  });
}
