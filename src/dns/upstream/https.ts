/**
 * DNS over HTTPS (RFC 8484): GET with id 0, HTTP/2 or HTTP/1.1 as the server chooses. One client per upstream; it is
 * built anew when a kept one turns out dead.
 */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import { dialStream, dialTls } from "./dial.ts";
import { type HttpClient, openHttp1, openHttp2 } from "./http-client.ts";
import type { Upstream, UpstreamEnv } from "./upstream.ts";
import { checkAnswers, idOf, withId } from "./wire.ts";

const MAX_REBUILDS = 2;
const DIAL_TIMEOUT_MS = 5000;

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
    const plain = withId(query, 0);
    const path = `${this.#server.path}?dns=${plain.toString("base64url")}`;
    for (let rebuilds = 0; ; rebuilds++) {
      const kept = this.#client;
      const opening = kept ?? this.#open();
      let client: HttpClient | null = null;
      try {
        client = await opening;
        const answer = await client.get(path, signal);
        if (answer.length < 12 || idOf(answer) !== 0)
          throw new ProtocolError(`${this.text} answered with another id`);
        checkAnswers(plain, answer);
        return answer;
      } catch (error) {
        if (signal.aborted) throw error; // a cancelled query says nothing about the client
        if (this.#client === opening) this.#client = null;
        client?.close();
        // A kept connection may have died unnoticed; what a server says is no reason to ask it again.
        if (kept === null || error instanceof ProtocolError || rebuilds >= MAX_REBUILDS) throw error;
      }
    }
  }

  #open(): Promise<HttpClient> {
    const opening = this.#dial();
    this.#client = opening;
    opening.catch(() => {
      if (this.#client === opening) this.#client = null;
    });
    return opening;
  }

  async #dial(): Promise<HttpClient> {
    const { scheme, host, port, userInfo } = this.#server;
    const shown = host.includes(":") ? `[${host}]` : host;
    const authority = port === (scheme === "https" ? 443 : 80) ? shown : `${shown}:${port}`;
    // Fresh for every dial: a later one must not inherit a deadline that has passed.
    const signal = () => AbortSignal.any([this.#life.signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
    const target = {
      text: this.text,
      scheme: scheme as "https" | "http",
      authority,
      authorization: userInfo === null ? null : `Basic ${Buffer.from(userInfo).toString("base64")}`,
    };
    if (scheme === "http") {
      const redial = () => dialStream(this.#server, this.#env, signal());
      return openHttp1(target, await redial(), redial);
    }
    const socket = await dialTls(this.#server, this.#env, ["h2", "http/1.1"], signal());
    if (socket.alpnProtocol === "h2") return openHttp2(target, socket);
    return openHttp1(target, socket, () => dialTls(this.#server, this.#env, ["http/1.1"], signal()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort(new DialError("aborted", `${this.text} is closed`));
    const client = await this.#client?.catch(() => null);
    client?.close();
    this.#client = null;
  }
}
