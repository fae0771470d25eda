/** The runtime's own libssl on raw descriptors, which costs less than `node:tls` over streams. */
import { openRelayCalls, type RelayCalls } from "./linux/relay-calls.ts";
import { openAlerts, type SendAlert } from "./linux/ssl-alert.ts";
import { openSsl, type Ssl } from "./linux/ssl.ts";
import { SslClients } from "./linux/ssl-client.ts";
import { SslContexts } from "./linux/ssl-context.ts";
import { openPoller, type Poller } from "./linux/uv-poll.ts";
import { ChainVerifier } from "./linux/x509-verify.ts";

export { EAGAIN, EINTR } from "./linux/relay-calls.ts";
export { BLOCKED_BY_WRITE, BROKEN, ENDED, FULL } from "./linux/ssl.ts";
export { BAD_CERTIFICATE, CERTIFICATE_REQUIRED } from "./linux/ssl-alert.ts";
export type { SslClients, SslHandle } from "./linux/ssl-client.ts";
export type { ServerContextOptions } from "./linux/ssl-context.ts";
export type { SslContext } from "./linux/ssl-material.ts";
export type { SslTickets } from "./linux/ssl-tickets.ts";
export type { ChainVerifier, VerifiedChain } from "./linux/x509-verify.ts";
export { UV_READABLE, UV_WRITABLE, type ReadinessWatch } from "./linux/uv-poll.ts";

/** All of one thread; `ssl` works on the buffer of `calls`. */
export interface NativeTls {
  readonly calls: RelayCalls;
  readonly ssl: Ssl;
  readonly contexts: SslContexts;
  readonly clients: SslClients;
  readonly verifier: ChainVerifier;
  readonly poller: Poller;
  readonly sendAlert: SendAlert;
}

/** For one thread: loaded at the first use and kept, since loading takes 15 ms and is never undone. */
export class TlsLibrary {
  #native: NativeTls | null | undefined;

  /** Null where this system or runtime cannot: `node:tls` is there. */
  get native(): NativeTls | null {
    if (this.#native === undefined) this.#native = open();
    return this.#native;
  }
}

function open(): NativeTls | null {
  const calls = openRelayCalls();
  const ssl = calls === null ? null : openSsl(calls.buffer);
  const contexts = SslContexts.open();
  const clients = SslClients.open();
  const verifier = ChainVerifier.open();
  const poller = openPoller();
  if (calls === null || ssl === null || contexts === null || clients === null) return null;
  if (verifier === null || poller === null) return null;
  return { calls, ssl, contexts, clients, verifier, poller, sendAlert: openAlerts() };
}
