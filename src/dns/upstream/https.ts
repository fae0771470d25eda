/**
 * DNS over HTTPS (RFC 8484): GET with id 0, HTTP/2 or HTTP/1.1 as the server chooses. One client per upstream; it is
 * built anew when a kept one turns out dead.
 */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import { HEADER_BYTES } from "#dns/types.ts";
import { dialStream, dialTls, inDialTime } from "./dial.ts";
import { type HttpClient, openHttp1, openHttp2 } from "./http-client.ts";
import type { Upstream, UpstreamEnv } from "./upstream.ts";
import { abortion, checkAnswers, idOf, withId } from "./wire.ts";

const MAX_REBUILDS = 2;

export function openHttpsUpstream(server: NameserverOptions, env: UpstreamEnv): Upstream {
  return new HttpsUpstream(server, env);
}

class HttpsUpstream implements Upstream {
  readonly text: string;
  readonly fixed = false;
  readonly #server: NameserverOptions;
  readonly #env: UpstreamEnv;
  /** Ends dials that are under way when the upstream is disposed. */
  readonly #life = new AbortController();
  #client: Promise<HttpClient> | null = null;

  constructor(server: NameserverOptions, env: UpstreamEnv) {
    this.text = server.text;
    this.#server = server;
    this.#env = env;
  }

  async exchange(query: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const waiting = abortion(signal);
    try {
      for (let rebuilds = 0; ; rebuilds++) {
        const kept = this.#client;
        const opening = kept ?? this.#open();
        try {
          return await this.#askBy(await Promise.race([opening, waiting.aborted]), query, signal);
        } catch (error) {
          // What a server says of one question, or a question that is given up, says nothing about the client.
          if (signal.aborted || error instanceof ProtocolError) throw error;
          this.#drop(opening);
          // A kept connection may have died unnoticed; a new one gives the real result.
          if (kept === null || rebuilds >= MAX_REBUILDS) throw error;
        }
      }
    } finally {
      waiting.release();
    }
  }

  async #askBy(client: HttpClient, query: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const plain = withId(query, 0);
    const answer = await client.get(`${this.#server.path}?dns=${plain.toString("base64url")}`, signal);
    if (answer.length < HEADER_BYTES || idOf(answer) !== 0)
      throw new ProtocolError(`${this.text} answered with another id`);
    checkAnswers(plain, answer);
    return answer;
  }

  #open(): Promise<HttpClient> {
    const opening = this.#dial();
    this.#client = opening;
    opening.catch(() => this.#drop(opening));
    return opening;
  }

  #drop(opening: Promise<HttpClient>): void {
    if (this.#client === opening) this.#client = null;
    opening.then(
      (client) => client.retire(),
      () => {}, // was never open
    );
  }

  async #dial(): Promise<HttpClient> {
    const { scheme, host, port, userInfo } = this.#server;
    const shown = host.includes(":") ? `[${host}]` : host;
    const authority = port === (scheme === "https" ? 443 : 80) ? shown : `${shown}:${port}`;
    const target = {
      text: this.text,
      scheme: scheme as "https" | "http",
      authority,
      authorization: userInfo === null ? null : `Basic ${Buffer.from(userInfo).toString("base64")}`,
    };
    const tls = (alpn: readonly string[]) =>
      inDialTime(this.text, this.#life.signal, (signal) => dialTls(this.#server, this.#env, alpn, signal));
    if (scheme === "http") {
      const dial = () =>
        inDialTime(this.text, this.#life.signal, (signal) => dialStream(this.#server, this.#env, signal));
      return openHttp1(target, await dial(), dial);
    }
    const socket = await tls(["h2", "http/1.1"]);
    if (socket.alpnProtocol === "h2") return openHttp2(target, socket);
    return openHttp1(target, socket, () => tls(["http/1.1"]));
  }

  reset(): void {
    const given = this.#client;
    this.#client = null;
    given?.then(
      (client) => client.close(),
      () => {}, // was never open
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort(new DialError("aborted", `${this.text} is closed`));
    const client = await this.#client?.catch(() => null);
    client?.close();
    this.#client = null;
  }
}
