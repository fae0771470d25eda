/**
 * The accepting side of REALITY. A client that cannot prove to know the server's public key is connected with dest, a site of
 * another owner, byte by byte; who can is answered in the shape of dest's own handshake.
 */
import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import { asError, AuthError, ProtocolError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import { destinationText, type Ip } from "#core/session.ts";
import type { TlsAccepted } from "#core/tls.ts";
import { describe, guardErrors } from "#net/listen/accept.ts";
import { proxyHeader } from "#net/listen/proxy-header.ts";
import { RecordStream } from "#transport/record-stream.ts";
import { type Admitted, admit } from "./admission.ts";
import { certificateRecord, type DestFlight } from "./dest-flight.ts";
import type { DestHandshake } from "./dest-handshake.ts";
import { DestProbe } from "./dest-probe.ts";
import { relay } from "./fallback-relay.ts";
import { finishWithClient } from "./finishing.ts";
import { hearHello, readAnswer } from "./hearing.ts";
import type { RealityServerOptions } from "./options.ts";
import { OwnCertificate } from "./own-certificate.ts";
import { RealityConnection } from "./server-connection.ts";
import { type PreparedShare, prepareShare, type ShapedFlight, shapeFlight } from "./server-handshake.ts";
import { Tap } from "./tap.ts";

const DIAL_TIMEOUT_MS = 10_000;
/** Both ends of a connection without a client, in PROXY protocol. */
const NO_CLIENT = { ip: "127.0.0.1" as Ip, port: 0 };

export interface RealityServerEnv {
  /** Where the options name no way to dest. */
  readonly dialer: Dialer;
  /** An outbound or group by its name, as `InboundEnv` has it. */
  readonly through: (name: string) => Dialer;
  readonly nowMs: () => number;
  readonly log: Log;
}

export class RealityServer implements Disposable {
  readonly #options: RealityServerOptions;
  readonly #env: RealityServerEnv;
  readonly #dialer: Dialer;
  readonly #certificate: OwnCertificate;
  readonly #probe: DestProbe;
  /** Of dest, and told already; asked again, dest mostly says the same. */
  readonly #warned = new Set<string>();
  /** The key exchange that dest chose last; null: none yet. */
  #group: number | null = null;

  /** Asks dest at once what it sends behind a handshake, and whether that can be imitated. */
  constructor(options: RealityServerOptions, env: RealityServerEnv) {
    this.#options = options;
    this.#env = env;
    this.#dialer = options.proxy === "" ? env.dialer : env.through(options.proxy);
    this.#certificate = new OwnCertificate(options.mldsa65Seed);
    this.#probe = new DestProbe({
      dial: (signal) => this.#dialForProbe(signal),
      onAnswer: (name, answer) => this.#judgeDest(name, answer),
    });
    for (const name of options.serverNames) this.#probe.lengths(name, ["h2"]);
  }

  /** As `SecurityServer.accept`: rejects where the client is connected with dest, or dest cannot be reached. */
  async accept(connection: AcceptedConnection, bypassable: boolean): Promise<TlsAccepted> {
    const stream = connection.stream();
    guardErrors(stream);
    const client = new Tap(stream);
    client.listen(); // while dest is dialled
    const ends = { client, dest: new Tap(await this.#dial(connection, stream)) };
    const leave = (fromDest: Buffer): void => relay(ends.client, ends.dest, fromDest, this.#options);
    const admission = (hello: Buffer): Admitted | null => admit(hello, this.#options, this.#env.nowMs());
    const { admitted, fromDest } = await hearHello(ends, admission);
    if (admitted === null) {
      leave(fromDest);
      throw new AuthError("no token of REALITY; the client is connected with dest");
    }
    const prepared = this.#group === null ? null : prepareShare(admitted, this.#group); // while dest makes its answer
    const answer = await readAnswer(ends);
    const { flight } = answer;
    const shaped = flight === null ? null : this.#shape(admitted, flight, prepared);
    if (flight === null || shaped === null) {
      leave(answer.fromDest);
      throw new ProtocolError("dest's handshake was not imitated; the client is connected with dest");
    }
    const own = this.#answer(admitted, shaped, stream);
    const finishing = await finishWithClient(ends, own, answer.fromDest.subarray(flight.bytes));
    if (!finishing.isFinished) {
      own[Symbol.dispose]();
      leave(finishing.fromDest);
      throw new AuthError("the client has repeated another one's hello; it is connected with dest");
    }
    ends.dest.stream.destroy();
    return secured(ends.client, own, admitted, bypassable);
  }

  [Symbol.dispose](): void {
    this.#probe[Symbol.dispose]();
  }

  async #dialForProbe(signal: AbortSignal): Promise<Duplex> {
    const { dest, xver } = this.#options;
    const stream = await this.#dialer.connect(dest, { signal, metadata: null });
    guardErrors(stream);
    if (xver > 0) stream.write(proxyHeader(xver, NO_CLIENT, NO_CLIENT));
    return stream;
  }

  async #dial({ source, local }: AcceptedConnection, client: Duplex): Promise<Duplex> {
    const { dest, xver } = this.#options;
    const asked = { network: "tcp", type: "Inner", user: null, destination: dest } as const;
    const metadata = describe({ name: "", ruleList: null, target: null }, { source, local }, asked);
    const late = new AbortController();
    // An AbortSignal.timeout costs a multiple of it.
    const timer = setTimeout(() => late.abort(new Error("dest did not answer in time")), DIAL_TIMEOUT_MS);
    try {
      const stream = await this.#dialer.connect(dest, { signal: late.signal, metadata });
      guardErrors(stream);
      if (xver > 0) stream.write(proxyHeader(xver, source, local));
      return stream;
    } catch (cause) {
      client.destroy();
      throw new ProtocolError(`dest cannot be reached: ${asError(cause).message}`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  #shape(admitted: Admitted, flight: DestFlight, prepared: PreparedShare | null): ShapedFlight | null {
    try {
      const shaped = shapeFlight(admitted, flight, this.#certificate, prepared);
      this.#group = shaped?.group ?? this.#group;
      return shaped;
    } catch {
      return null; // shares or a ServerHello that are none: dest has the answer
    }
  }

  /** Where dest cannot be imitated its site is all that clients see, so that must not come as a surprise. */
  #judgeDest(name: string, answer: DestHandshake | Error): void {
    const asked = name === "" ? "a client without a name" : name;
    if (answer instanceof Error)
      return this.#warn(`to ${asked} it answers with no handshake of TLS 1.3: ${answer.message}`);
    if (answer.flight === null)
      return this.#warn(
        `its handshake for ${asked} cannot be imitated: it must choose X25519 or X25519MLKEM768 at once`,
      );
    const { bytes, leastBytes } = certificateRecord(answer.flight, this.#certificate.bytes);
    if (bytes >= leastBytes) return;
    const better = this.#options.mldsa65Seed === null ? "" : ", or no mldsa65-seed";
    this.#warn(
      `it shows its certificates for ${asked} in a record of ${bytes} bytes, and ${leastBytes} are needed: another site${better} would be right`,
    );
  }

  #warn(what: string): void {
    if (this.#warned.has(what)) return;
    this.#warned.add(what);
    const { where, dest } = this.#options;
    this.#env.log.warning(
      `${where}: reality-config.dest: ${destinationText(dest)}: ${what}; no client is let in like this`,
    );
  }

  /** What the client gets in place of dest's answer. */
  #answer({ serverName, protocols }: Admitted, shaped: ShapedFlight, client: Duplex): RealityConnection {
    client.write(shaped.records);
    const later = (): readonly number[] => this.#probe.lengths(serverName, protocols);
    const connection = new RealityConnection(shaped, later);
    connection.start();
    return connection;
  }
}

/** The stream of a client that has finished. */
function secured(
  client: Tap,
  connection: RealityConnection,
  { serverName }: Admitted,
  bypassable: boolean,
): TlsAccepted {
  const { hasEnded } = client;
  const below = client.release();
  const output = connection.takeOutput();
  if (output !== null) below.write(output);
  const stream = new RecordStream(below, connection);
  guardErrors(stream);
  if (hasEnded) stream.destroy();
  return { stream, alpn: null, serverName: serverName || null, bypass: bypassable ? stream : null };
}
