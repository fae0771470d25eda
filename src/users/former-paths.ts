/** Addresses of subscriptions that another program gave out, and the tokens that they lead to here (docs/import.md). */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import * as z from "zod";
import { messageOf } from "#core/errors.ts";

const table = z.object({
  version: z.literal(1),
  paths: z
    .array(z.object({ prefix: z.string().regex(/^\/(?:.*\/)?$/), format: z.enum(["", "mihomo"]) }))
    .max(16),
  secret: z.string().min(1).optional(),
  users: z.record(
    z.string(),
    z.object({ tokens: z.array(z.string().regex(/^[\w-]+$/)).min(1), since: z.number().optional() }),
  ),
});
type Table = z.output<typeof table>;

/** Some hundred thousand users. */
const MOST_BYTES = 64 * 1024 * 1024;
/** Of a name in a path: Marzban's oldest, which are JSON Web Tokens, have two hundred characters. */
const LONGEST_NAME = 1024;
/** As many listeners may one user of a panel have been in. */
const MOST_TOKENS = 32;

export class FormerPaths {
  /** Why the file is not used; null: it is. */
  readonly fault: string | null;
  readonly #paths: Table["paths"];
  readonly #secret: string | null;
  /** By digest: how long a look-up takes says nothing of how much of a name is right. */
  readonly #users: ReadonlyMap<string, Table["users"][string]>;

  private constructor(read: Table | null, fault: string | null) {
    this.fault = fault;
    this.#paths = read?.paths ?? [];
    this.#secret = read?.secret ?? null;
    this.#users = new Map(Object.entries(read?.users ?? {}).map(([name, user]) => [digestOf(name), user]));
  }

  /** `path`: absolute. A file that cannot be used leaves no addresses, and says why in `fault`. */
  static open(path: string): FormerPaths {
    try {
      if (statSync(path).size > MOST_BYTES) return new FormerPaths(null, "it is larger than 64 MiB");
      const read = table.safeParse(JSON.parse(readFileSync(path, "utf8")));
      if (read.success) return new FormerPaths(read.data, null);
      const [issue] = read.error.issues;
      return new FormerPaths(null, `${issue?.path.slice(0, 2).join(".")}: ${issue?.code}`);
    } catch (error) {
      const isText = error instanceof SyntaxError; // its message would quote tokens
      return new FormerPaths(null, isText ? "it is no JSON" : messageOf(error));
    }
  }

  /** The present address of what a path without query meant; null: it meant nothing. */
  find(path: string): string | null {
    for (const { prefix, format } of this.#paths) {
      if (!path.startsWith(prefix)) continue;
      const name = path.slice(prefix.length).replace(/\/$/, "");
      const user = name === "" || name.length > LONGEST_NAME ? null : this.#userOf(name);
      if (user === null) continue;
      const tokens = user.tokens.slice(0, MOST_TOKENS).join(".");
      return `/sub/svc/${tokens}${format === "" ? "" : `?format=${format}`}`;
    }
    return null;
  }

  #userOf(name: string): Table["users"][string] | null {
    if (this.#secret === null) return this.#users.get(digestOf(name)) ?? null;
    const signed = signedName(name, this.#secret);
    const user = signed === null ? undefined : this.#users.get(digestOf(signed.user));
    return user === undefined || signed === null || signed.atMs < (user.since ?? 0) ? null : user;
  }
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("latin1");
}

interface SignedName {
  readonly user: string;
  readonly atMs: number;
}

/** Marzban's app/utils/jwt.py: base64 of `user,seconds` with ten characters of a digest behind it, or a JSON Web Token. */
function signedName(name: string, secret: string): SignedName | null {
  if (name.startsWith("eyJ")) return webToken(name, secret);
  const [body, signature] = [name.slice(0, -SIGNATURE), name.slice(-SIGNATURE)];
  const digest = createHash("sha256")
    .update(body + secret)
    .digest("base64url");
  if (!isSame(signature, digest.slice(0, SIGNATURE))) return null;
  const [user = "", seconds = ""] = Buffer.from(body, "base64url").toString().split(",");
  return /^\d{1,12}$/.test(seconds) ? { user, atMs: Number(seconds) * 1000 } : null;
}

const SIGNATURE = 10;

/** HS256 (RFC 7515, RFC 7519), as Marzban gave out before. */
function webToken(name: string, secret: string): SignedName | null {
  const [head = "", body = "", signature = ""] = name.split(".");
  const due = createHmac("sha256", secret).update(`${head}.${body}`).digest("base64url");
  if (!isSame(signature, due)) return null;
  try {
    const payload: unknown = JSON.parse(Buffer.from(body, "base64url").toString());
    const read = claims.safeParse(payload);
    return read.success ? { user: read.data.sub, atMs: read.data.iat * 1000 } : null;
  } catch {
    return null; // it is signed, and no JSON
  }
}

const claims = z.object({ sub: z.string(), access: z.literal("subscription"), iat: z.number() });

function isSame(given: string, due: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(due)];
  return left.length === right.length && timingSafeEqual(left, right);
}
