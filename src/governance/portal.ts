/** The portal: a plain HTTP server of its own that shows people why they are slow. It has no secret and no commands. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "#lib/node-http.ts";
import { acceptedLanguages, languageOf, type Language } from "#lib/languages.ts";
import { messageOf } from "#core/errors.ts";
import type { PolicyStatusView, ReportBucketView, ReportQuery } from "#core/governance.ts";
import type { Log } from "#core/log.ts";
import { descriptorOf } from "#core/handover.ts";
import { boundAddress } from "#core/sockets.ts";
import type { Granularity } from "./calendar.ts";
import { PortalSigner } from "./portal-link.ts";
import { plotRange, type ReportTime } from "./portal-plot.ts";
import { overPage, ownPage, shortText, type AddressOf } from "./portal-page.ts";
import type { GovernanceSettings } from "./settings.ts";

const HEADERS_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 30_000;
/** How often the runtime looks whether one of these has passed; by default twice a minute. */
const CHECK_MS = 500;
const MAX_HEAD_BYTES = 16 * 1024;
/** Further ones wait in the kernel's queue; a connection is closed after the idle time. */
const MOST_CONNECTIONS = 256;

const PAGE_HEADERS = {
  "Cache-Control": "no-store, max-age=0",
  Pragma: "no-cache",
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
  "Content-Type": "text/html; charset=utf-8",
};

export interface PortalEnv {
  readonly log: Log;
  nowSeconds(): number;
  /** Policies by id, as they are now. */
  policies(): readonly PolicyStatusView[];
  /** Policies that are about the device with this address. */
  policiesOf(address: string): readonly PolicyStatusView[];
  reportTime(): ReportTime;
  report(query: ReportQuery): readonly ReportBucketView[];
  /** The descriptor of a socket that listens there already, owned from here on; null, absent: none. */
  readonly inherited?: (listen: Listen) => number | null;
}

export type Listen = NonNullable<GovernanceSettings["portal"]["listen"]>;

/** A portal that listens. Its key lives as long as it does. */
export class Portal implements Disposable {
  readonly key: string;
  readonly #server: Server;
  readonly #signer = new PortalSigner();
  readonly #env: PortalEnv;
  /** Without a slash at the end. */
  url: string;

  private constructor(listen: Listen, env: PortalEnv) {
    this.key = `${listen.host}:${listen.port}`;
    this.url = "";
    this.#env = env;
    this.#server = createServer(
      {
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: IDLE_TIMEOUT_MS,
        connectionsCheckingInterval: CHECK_MS,
        maxHeaderSize: MAX_HEAD_BYTES,
      },
      (request, response) => this.#answer(request, response),
    );
    this.#server.maxConnections = MOST_CONNECTIONS;
    this.#server.keepAliveTimeout = IDLE_TIMEOUT_MS;
    this.#server.setTimeout(IDLE_TIMEOUT_MS);
    this.#server.on("clientError", (_, socket) => socket.destroy());
  }

  /** Rejects where the address cannot be bound. */
  static async open(listen: Listen, env: PortalEnv): Promise<Portal> {
    const portal = new Portal(listen, env);
    const server = portal.#server;
    const fd = env.inherited?.(listen) ?? null;
    if (fd !== null) server.listen({ fd });
    else server.listen({ port: listen.port, host: listen.host === "" ? "::" : listen.host });
    await once(server, "listening");
    server.on("error", (error) => env.log.error(`portal: ${messageOf(error)}`));
    return portal;
  }

  get fd(): number {
    return descriptorOf(this.#server);
  }

  /** Where it really listens. */
  get boundUrl(): string {
    const { address, port } = boundAddress(this.#server);
    return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
  }

  link(ids: readonly string[]): string {
    return `${this.url}/${this.#signer.query(ids, this.#env.nowSeconds())}`;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = URL.parse(request.url ?? "/", "http://portal");
    const chosen = url?.searchParams.get("lang") ?? "";
    const language = languageOf([chosen, ...acceptedLanguages(request.headers["accept-language"])]);
    const send = (status: number, body: string): void => {
      response.writeHead(status, { ...PAGE_HEADERS, "Content-Language": language }).end(body);
    };
    request.resume(); // a body means nothing here
    if (url?.pathname === "/me") {
      const address = (request.socket.remoteAddress ?? "").replace(/^::ffff:(?=\d+\.)/, "");
      const by = byOf(url.searchParams.get("by"));
      return send(
        200,
        this.#ownPage(language, { address, by }, (other) => `?by=${by}&lang=${other}`),
      );
    }
    const ids = url === null ? null : this.#signer.verify(url.searchParams, this.#env.nowSeconds());
    if (ids === null) return send(403, shortText(language, "denied"));
    const over = this.#env.policies().filter(({ id, overQuota }) => overQuota && ids.includes(id));
    if (over.length === 0) return send(410, shortText(language, "gone"));
    const address = (other: Language): string => {
      const query = new URLSearchParams(url?.searchParams);
      query.set("lang", other);
      return `?${query}`;
    };
    send(200, overPage(language, over, address));
  }

  #ownPage(
    language: Language,
    { address, by }: { readonly address: string; readonly by: Granularity },
    addressIn: AddressOf,
  ): string {
    const now = this.#env.nowSeconds();
    const range = plotRange(by, now, this.#env.reportTime());
    const bucketsOf = (id: string) =>
      this.#env.report({ key: `device:${id}`, granularity: by, from: range.earlierFrom, to: now + 1 });
    return ownPage(language, this.#env.policiesOf(address), bucketsOf, range, addressIn);
  }

  [Symbol.dispose](): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Of what stands in an address: hours for anything else. */
function byOf(text: string | null): Granularity {
  return text === "day" || text === "month" ? text : "hour";
}
