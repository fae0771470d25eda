/** One connection to a hysteria2 server: authentication over HTTP/3, then a stream for each connection, and datagrams. */
import type { Duplex } from "node:stream";
import { AuthError, DialError } from "#core/errors.ts";
import { type DatagramFlow, type Destination, destinationText } from "#core/session.ts";
import { answeringLate } from "#core/stream.ts";
import type { OpenedFlows } from "#protocols/shared/opened-flows.ts";
import { discardStream, GENERAL_PROTOCOL_ERROR, NO_ERROR } from "#transport/http3/request.ts";
import { openControlStream, request, REQUEST_CANCELLED } from "#transport/http3/request.ts";
import { Brutal } from "#transport/quic/congestion/brutal.ts";
import { QuicClient, type QuicClientOptions } from "#transport/quic/client.ts";
import { openBidi } from "#transport/quic/open-bidi.ts";
import type { QuicSession } from "#transport/quic/sessions.ts";
import { AnswerHead } from "./answer-head.ts";
import { newUdpSessions } from "./udp-sessions.ts";
import { AUTH_PADDING, encodeTcpRequest, padding, STATUS_AUTHENTICATED, type UdpMessage } from "./wire.ts";

export interface SessionOptions {
  readonly node: string;
  readonly password: string;
  /** Bytes a second that we want to send and receive; 0: unknown. */
  readonly upBytes: number;
  readonly downBytes: number;
  readonly udpMtu: number;
  readonly timeoutMs: number;
  readonly quic: Omit<QuicClientOptions, "onDatagram" | "onStream" | "abortCode">;
}

export class Hysteria2Session implements QuicSession {
  readonly #client: QuicClient;
  readonly #node: string;
  readonly #udp: OpenedFlows<UdpMessage>;
  #carriesUdp = true;

  /** Throws `DialError`; nothing is left open then. */
  static async open(options: SessionOptions, signal: AbortSignal): Promise<Hysteria2Session> {
    const holder: { udp?: OpenedFlows<UdpMessage> } = {};
    const client = await QuicClient.open(
      {
        ...options.quic,
        abortCode: REQUEST_CANCELLED,
        onStream: discardStream,
        onDatagram: (payload) => holder.udp?.take(payload),
      },
      signal,
    );
    const session = new Hysteria2Session(client, options);
    holder.udp = session.#udp;
    const onAbort = (): void => client.close(NO_ERROR);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await session.#authenticate(options);
      return session;
    } catch (error) {
      if (signal.aborted) throw new DialError("aborted", `${options.node}: aborted`, { cause: error });
      client.close(GENERAL_PROTOCOL_ERROR);
      if (error instanceof DialError) throw error;
      const ended = client.connection.isClosed ? await client.closed : null;
      const cause = ended ?? error;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new DialError("failed", `${options.node}: authentication: ${why}`, { cause });
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  private constructor(client: QuicClient, { node, udpMtu }: SessionOptions) {
    this.#client = client;
    this.#node = node;
    const { connection } = client;
    this.#udp = newUdpSessions({
      get mostBytes() {
        return Math.min(udpMtu, connection.maxDatagramBytes);
      },
      send: (head, data) => connection.sendDatagram(head, data),
      ended: () => client.flowEnded(),
    });
    void client.closed.then(() => this.#udp.close());
  }

  async #authenticate({ password, upBytes, downBytes, timeoutMs }: SessionOptions): Promise<void> {
    const { connection } = this.#client;
    if (!openControlStream(connection))
      throw new DialError("failed", `${this.#node}: the server allows no stream`);
    const fields = await request(
      connection,
      [
        [":method", "POST"],
        [":scheme", "https"],
        [":authority", "hysteria"],
        [":path", "/auth"],
        ["hysteria-auth", Buffer.from(password).toString("latin1")],
        ["hysteria-cc-rx", String(Math.floor(downBytes))],
        ["hysteria-padding", padding(AUTH_PADDING)],
      ],
      timeoutMs,
    );
    const answer = new Map(fields);
    const status = answer.get(":status");
    if (status !== STATUS_AUTHENTICATED) {
      const why = new AuthError(
        `the server answers as a web server does (status ${status}): the password is wrong`,
      );
      throw new DialError("failed", `${this.#node}: ${why.message}`, { cause: why });
    }
    this.#carriesUdp = answer.get("hysteria-udp")?.toLowerCase() === "true";
    const rate = chooseRate(answer.get("hysteria-cc-rx") ?? "", upBytes);
    if (rate > 0) connection.setCongestion(new Brutal(rate));
  }

  get isOver(): boolean {
    return this.#client.connection.isClosed;
  }

  get isClosedToMore(): boolean {
    return this.isOver || this.#client.isSilent;
  }

  get closed(): Promise<unknown> {
    return this.#client.closed;
  }

  /** For port hopping. */
  setPort(port: number): void {
    this.#client.setPort(port);
  }

  /**
   * Open at once: servers answer when the destination has spoken, which may wait for the client. That the server could not
   * reach it is an error of the stream. Throws `DialError`.
   */
  async connect(destination: Destination, signal: AbortSignal): Promise<Duplex> {
    const stream = await openBidi(this.#client.connection, this.#node, signal);
    stream.write(encodeTcpRequest(destinationText(destination)));
    stream.readHead(new AnswerHead(this.#node));
    return answeringLate(stream);
  }

  associate(): DatagramFlow {
    if (!this.#carriesUdp) throw new DialError("unsupported", `${this.#node}: the server carries no UDP`);
    return this.#udp.open();
  }

  retire(): void {
    this.#client.retire(NO_ERROR, () => !this.#udp.isEmpty);
  }
}

/** Bytes a second that we send with; 0: as congestion control finds out. `said`: what the server takes, or `auto`. */
export function chooseRate(said: string, upBytes: number): number {
  if (said.toLowerCase() === "auto") return 0;
  const takes = /^\d{1,15}$/.test(said) ? Number(said) : 0;
  return takes > 0 && upBytes > 0 ? Math.min(takes, upBytes) : upBytes;
}
