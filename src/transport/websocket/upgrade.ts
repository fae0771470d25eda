/** A client's request to switch to WebSocket (RFC 6455 §4.1), or to a bare stream in the same way, and the answer to it. */
import { createHash, randomBytes } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { UpgradeRecipe } from "#core/wire-recipe.ts";
import { encodeHead, type HttpHead } from "#transport/http-head.ts";

const USER_AGENT =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/136.0.0.0 Safari/537.36";

type Place = Pick<UpgradeRecipe, "path" | "host" | "headers">;

/** Of one connection. */
export class Upgrade {
  readonly #place: Place;
  /** Null: no frames follow. */
  readonly #key: string | null;

  constructor(place: Place, isFramed: boolean) {
    this.#place = place;
    this.#key = isFramed ? randomBytes(16).toString("base64") : null;
  }

  /** The request. `more`: further fields. Throws `ProtocolError` where one of them has a line break. */
  head(path: string = this.#place.path, more: readonly (readonly [string, string])[] = []): Buffer {
    const key: [string, string][] =
      this.#key === null
        ? []
        : [
            ["Sec-WebSocket-Version", "13"],
            ["Sec-WebSocket-Key", this.#key],
          ];
    return encodeHead(`GET ${path} HTTP/1.1`, new Map([...upgradeFields(this.#place), ...key, ...more]));
  }

  /** Throws `ProtocolError` where the server does not switch. */
  expect(answer: HttpHead): void {
    expectSwitch(answer);
    if (this.#key !== null && answer.fields.get("sec-websocket-accept") !== acceptOf(this.#key))
      throw new ProtocolError("the WebSocket server answered for another key");
  }
}

function upgradeFields({ host, headers }: Place): [string, string][] {
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() !== "host");
  const named = own.some(([name]) => name.toLowerCase() === "user-agent");
  return [
    ["Host", host],
    ...(named ? [] : [["User-Agent", USER_AGENT] satisfies [string, string]]),
    ...own,
    ["Connection", "Upgrade"],
    ["Upgrade", "websocket"],
  ];
}

/** RFC 6455 §4.2.2: base64(SHA-1(key + GUID)). */
export function acceptOf(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

function expectSwitch({ start, fields }: HttpHead): void {
  if (!/^HTTP\/1\.[01] 101( |$)/.test(start))
    throw new ProtocolError(`the server did not switch protocols: ${start.slice(0, 60)}`);
  if (fields.get("upgrade")?.toLowerCase() !== "websocket")
    throw new ProtocolError("the server switched to something else than WebSocket");
}
