import type { Duplex } from "node:stream";
import type { DialContext } from "#core/outbound.ts";

export interface HttpRequest {
  readonly method: string;
  readonly scheme: "http" | "https";
  readonly authority: string;
  /** With its query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** `stream`: what is written to the exchange; null: none. */
  readonly body: Buffer | "stream" | null;
}

/** Sends requests to one server over whatever version of HTTP it was made for. */
export interface HttpClient extends AsyncDisposable {
  /**
   * The exchange: written to as the request's body, read as the answer's. Its answer is not awaited; one with another
   * status than 200 destroys it. Has an 'error' listener. Throws `DialError`.
   */
  open(request: HttpRequest, context: DialContext): Promise<Duplex>;
}
