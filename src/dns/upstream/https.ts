/** DNS over HTTPS (RFC 8484): GET with id 0, over HTTP/3, HTTP/2 or HTTP/1.1. */
import { ProtocolError } from "#core/errors.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import { HEADER_BYTES } from "#dns/types.ts";
import { dialStream, dialTls, inDialTime } from "./dial.ts";
import { fasterOf } from "./faster.ts";
import type { OpenHttp3 } from "./http3-client.ts";
import type { HttpClient, HttpTarget } from "./http-client.ts";
import { type AskingClient, type DialClient, openKeptClient } from "./kept-client.ts";
import type { Upstream, UpstreamEnv } from "./upstream.ts";
import { checkAnswers, idOf, withId } from "./wire.ts";

export function openHttpsUpstream(server: NameserverOptions, env: UpstreamEnv): Upstream {
  return openKeptClient(server.text, dialOf(server, env));
}

function dialOf(server: NameserverOptions, env: UpstreamEnv): DialClient {
  const { text, scheme, http3 } = server;
  const target = targetOf(server);
  const inTime = <T>(life: AbortSignal, dial: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    inDialTime(text, life, dial);
  const asked = async (opening: Promise<HttpClient>): Promise<AskingClient> => asking(await opening, server);

  const byClearHttp: DialClient = async (life) => {
    const { openHttp1 } = await import("./http-client.ts");
    const dial = () => inTime(life, (signal) => dialStream(server, env, signal));
    return asked(dial().then((stream) => openHttp1(target, stream, dial)));
  };
  const byTls: DialClient = async (life) => {
    const { openHttp1, openHttp2 } = await import("./http-client.ts");
    const dial = (alpn: readonly string[]) => inTime(life, (signal) => dialTls(server, env, alpn, signal));
    return asked(
      dial(["h2", "http/1.1"]).then((socket) =>
        socket.alpnProtocol === "h2"
          ? openHttp2(target, socket)
          : openHttp1(target, socket, () => dial(["http/1.1"])),
      ),
    );
  };
  let opener: Promise<OpenHttp3> | null = null;
  const byQuic: DialClient = async (life) => {
    // Where TLS races, a connection has to show that it comes about.
    opener ??= import("./http3-client.ts").then((all) => all.http3Opener(target, server, env, http3));
    const openHttp3 = await opener;
    return asked(inTime(life, openHttp3));
  };

  if (scheme === "http") return byClearHttp;
  if (http3) return byQuic;
  if (!env.preferHttp3) return byTls;
  const faster = fasterOf(byQuic, byTls);
  return async (life) => {
    await import("./http3-client.ts"); // neither way has to wait for its program
    await import("./http-client.ts");
    return faster(life);
  };
}

function targetOf({ text, scheme, host, port, userInfo }: NameserverOptions): HttpTarget {
  const shown = host.includes(":") ? `[${host}]` : host;
  return {
    text,
    scheme: scheme === "http" ? scheme : "https",
    authority: port === (scheme === "http" ? 80 : 443) ? shown : `${shown}:${port}`,
    authorization: userInfo === null ? null : `Basic ${Buffer.from(userInfo).toString("base64")}`,
  };
}

function asking(client: HttpClient, { text, path }: NameserverOptions): AskingClient {
  return {
    async ask(query, signal) {
      const plain = withId(query, 0);
      const answer = await client.get(`${path}?dns=${plain.toString("base64url")}`, signal);
      if (answer.length < HEADER_BYTES || idOf(answer) !== 0)
        throw new ProtocolError(`${text} answered with another id`);
      checkAnswers(plain, answer);
      return answer;
    },
    retire: () => client.retire(),
    close: () => client.close(),
  };
}
