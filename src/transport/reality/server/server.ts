/**
 * The accepting side of REALITY. A client that cannot prove to know the server's public key is connected with dest, a site of
 * another owner, byte by byte; who can is answered in the shape of dest's own handshake.
 */
import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import { asError, AuthError, ProtocolError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Ip } from "#core/session.ts";
import type { TlsAccepted } from "#core/tls.ts";
import { describe } from "#net/listen/accept.ts";
import { proxyHeader } from "#net/listen/proxy-header.ts";
import { finishHandshake, type HandshakeFacts } from "#transport/tls/server-handshake.ts";
import { Tls13Connection } from "#transport/tls13/connection.ts";
import { RecordStream } from "#transport/record-stream.ts";
import { type Admitted, admit } from "./admission.ts";
import { type DestFlight, readDestFlight } from "./dest-flight.ts";
import { DestProbe } from "./dest-probe.ts";
import { relay } from "./fallback-relay.ts";
import { HelloReader } from "#transport/tls13/hello-reader.ts";
import type { RealityServerOptions } from "./options.ts";
import { OwnCertificate } from "./own-certificate.ts";
import { RealityHandshake, type ShapedFlight, shapeFlight } from "./server-handshake.ts";
import { Tap } from "./tap.ts";

const DIAL_TIMEOUT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 30_000;
const NOTHING = Buffer.alloc(0);
/** Of dest's records with their headers: what a certificate of ours needs, without and with ML-DSA-65. */
const LEAST_CERTIFICATE_BYTES = 213;
const LEAST_SIGNED_CERTIFICATE_BYTES = 3544;
/** Both ends of a connection without a client, in PROXY protocol. */
const NO_CLIENT = { ip: "127.0.0.1" as Ip, port: 0 };

export interface RealityServerEnv {
  readonly dialer: Dialer;
  readonly nowMs: () => number;
  readonly log: Log;
}

/** Both ends, each with its reader; and what each has said that the other was not told. */
interface Ends {
  readonly client: Tap;
  readonly dest: Tap;
}

/** A client's first message. */
interface Heard {
  /** Null: it is dest's business. */
  readonly admitted: Admitted | null;
  readonly fromDest: Buffer;
}

export class RealityServer implements Disposable {
  readonly #options: RealityServerOptions;
  readonly #env: RealityServerEnv;
  readonly #certificate: OwnCertificate;
  readonly #probe: DestProbe;
  #hasWarned = false;

  /** Asks dest at once what it sends behind a handshake. */
  constructor(options: RealityServerOptions, env: RealityServerEnv) {
    this.#options = options;
    this.#env = env;
    this.#certificate = new OwnCertificate(options.mldsa65Seed);
    this.#probe = new DestProbe((signal) => this.#dialForProbe(signal));
    for (const name of options.serverNames) this.#probe.lengths(name, ["h2"]);
  }

  /** As `SecurityServer.accept`: rejects where the client is connected with dest, or dest cannot be reached. */
  async accept(connection: AcceptedConnection, bypassable: boolean): Promise<TlsAccepted> {
    const stream = connection.stream();
    const ends = { client: new Tap(stream), dest: new Tap(await this.#dial(connection, stream)) };
    const { admitted, fromDest } = await this.#hear(ends);
    if (admitted === null) {
      relay(ends.client, ends.dest, fromDest, this.#options);
      throw new AuthError("no token of REALITY; the client is connected with dest");
    }
    const answer = await readAnswer(ends);
    const shaped = answer.flight === null ? null : this.#shape(admitted, answer.flight);
    if (shaped === null) {
      this.#warn();
      relay(ends.client, ends.dest, answer.fromDest, this.#options);
      throw new ProtocolError("dest's handshake cannot be imitated; the client is connected with dest");
    }
    return await this.#finish(ends, admitted, shaped, bypassable);
  }

  [Symbol.dispose](): void {
    this.#probe[Symbol.dispose]();
  }

  async #dialForProbe(signal: AbortSignal): Promise<Duplex> {
    const { dest, xver } = this.#options;
    const stream = await this.#env.dialer.connect(dest, { signal, metadata: null });
    stream.on("error", () => {});
    if (xver > 0) stream.write(proxyHeader(xver, NO_CLIENT, NO_CLIENT));
    return stream;
  }

  async #dial({ source, local }: AcceptedConnection, client: Duplex): Promise<Duplex> {
    const { dest, xver } = this.#options;
    const asked = { network: "tcp", type: "Inner", user: null, destination: dest } as const;
    const metadata = describe({ name: "", ruleList: null, target: null }, { source, local }, asked);
    try {
      const signal = AbortSignal.timeout(DIAL_TIMEOUT_MS);
      const stream = await this.#env.dialer.connect(dest, { signal, metadata });
      stream.on("error", () => {});
      client.on("error", () => {});
      if (xver > 0) stream.write(proxyHeader(xver, source, local));
      return stream;
    } catch (cause) {
      client.destroy();
      throw new ProtocolError(`dest cannot be reached: ${asError(cause).message}`, { cause });
    }
  }

  /** Mirrors the client to dest until it is clear who the client is, or dest has spoken. Both are paused then. */
  async #hear({ client, dest }: Ends): Promise<Heard> {
    const hello = new HelloReader();
    const notAdmitted = { admitted: null, fromDest: NOTHING };
    return await untilSettled<Heard>(
      { client, dest },
      () => notAdmitted,
      (settle) => {
        dest.read({
          data: (fromDest) => settle({ admitted: null, fromDest }),
          end: () => settle(notAdmitted),
        });
        client.read({
          data: (bytes) => {
            dest.stream.write(bytes); // no more than a hello's length
            const message = hello.push(bytes);
            if (message === "more") return;
            const admitted = message === "none" ? null : admit(message, this.#options, this.#env.nowMs());
            settle({ admitted, fromDest: NOTHING });
          },
          end: () => settle(notAdmitted),
        });
      },
    );
  }

  #shape(admitted: Admitted, flight: DestFlight): ShapedFlight | null {
    try {
      return shapeFlight(admitted, flight, this.#certificate);
    } catch {
      return null; // shares or a ServerHello that are none: dest has the answer
    }
  }

  #warn(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { where, mldsa65Seed } = this.#options;
    const least = mldsa65Seed === null ? LEAST_CERTIFICATE_BYTES : LEAST_SIGNED_CERTIFICATE_BYTES;
    this.#env.log.warning(
      `${where}: reality-config: the handshake of dest cannot be imitated, so its clients see dest; dest must speak TLS 1.3 with X25519, and show certificates in a record of ${least} bytes or more`,
    );
  }

  /** The handshake's end, in place of dest, of which nothing is needed any more. */
  async #finish(
    { client, dest }: Ends,
    admitted: Admitted,
    shaped: ShapedFlight,
    bypassable: boolean,
  ): Promise<TlsAccepted> {
    const later = (): readonly number[] => this.#probe.lengths(admitted.serverName, admitted.protocols);
    const connection = new Tls13Connection((output) => new RealityHandshake(shaped, later, output));
    const hasEnded = client.hasEnded;
    const below = client.release();
    const stream = new RecordStream(below, connection);
    const facts = (): HandshakeFacts => ({
      alpn: null,
      serverName: admitted.serverName || null,
      bypass: bypassable ? stream : null,
      client: { given: false, refusal: null },
    });
    try {
      const finished = finishHandshake({ isDone: false, stream, below, facts }, "", undefined);
      if (hasEnded) stream.destroy();
      else stream.begin();
      below.resume();
      return await finished;
    } finally {
      dest.stream.destroy();
    }
  }
}

interface Answer {
  /** Null: it cannot be imitated. */
  readonly flight: DestFlight | null;
  /** All that dest has sent. */
  readonly fromDest: Buffer;
}

/** Dest's answer to the hello of a client that is let in, whose next bytes wait. Both are paused then. */
async function readAnswer({ client, dest }: Ends): Promise<Answer> {
  let fromDest: Buffer = NOTHING;
  const nothing = (): Answer => ({ flight: null, fromDest });
  return await untilSettled<Answer>({ client, dest }, nothing, (settle) => {
    dest.read({
      data(bytes) {
        fromDest = Buffer.concat([fromDest, bytes]); // up to MAX_FLIGHT_BYTES and one piece
        const flight = readDestFlight(fromDest);
        if (flight !== "more") settle(flight === "none" ? nothing() : { flight, fromDest });
      },
      end: () => settle(nothing()),
    });
    const timer = setTimeout(() => settle(nothing()), ANSWER_TIMEOUT_MS);
    return () => clearTimeout(timer);
  });
}

/** The first result; `closed` gives it where an end closes before. Both ends are paused behind it. */
function untilSettled<Result>(
  { client, dest }: Ends,
  closed: () => Result,
  start: (settle: (result: Result) => void) => (() => void) | void,
): Promise<Result> {
  return new Promise((resolve) => {
    let isSettled = false;
    let stop = (): void => {};
    const settle = (result: Result): void => {
      if (isSettled) return;
      isSettled = true;
      stop();
      for (const { stream } of [client, dest]) stream.off("close", onClose).pause();
      resolve(result);
    };
    const onClose = (): void => settle(closed());
    for (const { stream } of [client, dest]) stream.on("close", onClose);
    stop = start(settle) ?? stop;
    if (isSettled) stop();
    if (client.stream.destroyed || dest.stream.destroyed) onClose();
  });
}
