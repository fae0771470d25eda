import type { Duplex } from "node:stream";
import { connect } from "node:tls";
import { DialError } from "#core/errors.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import { toDestination } from "#net/address/ip.ts";

/** The stream on which a server of http or https is spoken to in HTTP/1.1, its certificate verified. Throws; nothing is left open then. */
export async function openUrlStream(
  url: URL,
  { dialer, trust }: { readonly dialer: Dialer; readonly trust: Trust },
  signal: AbortSignal,
): Promise<Duplex> {
  const secure = url.protocol === "https:";
  const destination = toDestination(url.hostname, Number(url.port) || (secure ? 443 : 80));
  const stream = await dialer.connect(destination, { signal, metadata: null });
  stream.on("error", () => stream.destroy()); // the reader of the stream sees its close
  if (!secure) return stream;
  const tls = connect({
    socket: stream,
    ALPNProtocols: ["http/1.1"],
    secureContext: trust.context({}),
    host: destination.host ?? (destination.ip as string), // what the certificate must be valid for
    ...(destination.host === null ? {} : { servername: destination.host }), // RFC 6066 §3: no literal addresses
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = (): void => reject(new DialError("aborted", "aborted"));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  tls.once("secureConnect", resolve).on("error", reject);
  tls.once("close", () => reject(new DialError("failed", `${url.host} closed the connection`)));
  tls.once("close", () => stream.destroy());
  try {
    await promise;
    return tls;
  } catch (error) {
    tls.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
