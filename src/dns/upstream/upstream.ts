import type { Dialer } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Trust } from "#core/trust.ts";
import type { QuestionSockets } from "./question-sockets.ts";

/** One way to ask one server. */
export interface Upstream extends AsyncDisposable {
  /** For logs and explanations: no secret. */
  readonly text: string;
  /** True for rcode://: answers for its whole list, and the answer is not kept. */
  readonly fixed: boolean;
  /**
   * Sends a query (any id; the upstream sets its own) and resolves to the server's message: its question was compared,
   * its id is arbitrary, all else is unchecked. Rejects with the reason, also soon after `signal` aborts.
   */
  exchange(query: Uint8Array, signal: AbortSignal): Promise<Uint8Array>;
  /** Gives up its connections: they belong to a network that is gone. Questions on kept ones are asked anew. */
  reset(): void;
}

/** How an upstream is reached. */
export interface Exit {
  readonly dialer: Dialer;
  /**
   * direct: our own socket, so answers must come from the address that was asked. proxy: a socket of the proxy server,
   * which may also be given a name. rules: the outbound that the router chooses for the address.
   */
  readonly kind: "direct" | "proxy" | "rules";
}

export interface UpstreamEnv {
  /** Asked at every dial, so that proxies may be built after the resolver they need. */
  readonly exit: () => Exit;
  /** Resolves names of upstream servers: the default resolver. */
  readonly resolver: Resolver;
  readonly trust: Trust;
  /** `prefer-h3`: DNS over HTTPS by HTTP/3 where that is the faster way. */
  readonly preferHttp3: boolean;
  /** Of questions over UDP. */
  readonly sockets: QuestionSockets;
}
