/** What a resource is made of: routes that say everything about themselves once. `mount.ts` serves them, `openapi.ts` prints them. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Caller, RouteScope } from "#core/access.ts";
import type { AuditDraft } from "#core/audit.ts";
import type { Upgrade } from "./upgrade.ts";

export type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * Checks of its own instead of the Controller secret; throws `ApiError`. Null: it has answered by itself. No answer behind
 * it may be kept.
 */
export type Guard = (request: FastifyRequest, reply: FastifyReply) => Caller | null;

/** What the audit log says of a change besides its route, path and caller. */
export type AuditNote = Partial<
  Pick<AuditDraft, "action" | "target" | "listener" | "user" | "before" | "after">
>;

/** The names of the segments that a pattern leaves open: `name` in `/proxies/:name/delay`, `*` for what follows `/ui/`. */
type Names<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | Names<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : Path extends `${string}/*`
      ? "*"
      : never;

/** Path segments by their names. Where a pattern is not known to the types, any name may be asked for. */
export type Params<Path extends string = string> = Readonly<
  Record<string extends Path ? string : Names<Path>, string>
>;

export interface Call<Query = unknown, Body = unknown, Path extends string = string> {
  /** Path segments, decoded once. */
  readonly params: Params<Path>;
  readonly query: Query;
  /** The parsed JSON body where the route has a schema for it. */
  readonly body: Body;
  /** The body as it came, at most `maxBodyBytes`. */
  readonly bytes: Uint8Array;
  /** Media type of the body in lower case without parameters; "" without one. */
  readonly mediaType: string;
  /** Not null where the client asked for a WebSocket. */
  readonly upgrade: Upgrade | null;
  /** Of an open route the Controller's owner. */
  readonly caller: Caller;
  /** For the audit log, before the handler settles; no secret and no credential. Without effect where nothing is changed. */
  note(what: AuditNote): void;
  /** Aborts when the request is over: it has been answered, or the client has gone. */
  readonly signal: AbortSignal;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export interface Answer {
  readonly status: 200 | 201 | 204 | 307;
  /** Media type; absent: JSON (or nothing with 204). */
  readonly type?: string;
  /** Further media types that may be asked for. */
  readonly otherTypes?: readonly string[];
  readonly description: string;
  /** What the JSON looks like; of a stream, a record of it. Only the document says so: answers are not written by it. */
  readonly schema?: z.ZodType;
}

/** A body that the route reads by itself. */
export interface RawBody {
  readonly type: string;
  /** Absent where it is not JSON. */
  readonly schema?: z.ZodType;
}

export type Faults = Readonly<Partial<Record<307 | 500 | 503 | 504, string>>>;

export interface Route {
  readonly method: Method;
  /** A pattern: `/proxies/:name`. */
  readonly path: string;
  /** The path with a trailing slash is the same route. */
  readonly slash?: boolean;
  /** What a caller has to be allowed; `open` asks for no credential. */
  readonly scope: RouteScope;
  /** Instead of the Controller secret; the Host allow-list comes before it where that secret is empty. */
  readonly guard?: Guard;
  /** A GET that does something, such as a test of delays: no page of another origin may cause it. */
  readonly acts?: boolean;
  /** Changes nothing, whatever its method: what it works on comes as a body. */
  readonly onlyReads?: boolean;
  /** Answers with records until the client leaves, also over a WebSocket (then a `token` query may replace the header). */
  readonly stream?: boolean;
  /** Absent: 1 MiB. */
  readonly maxBodyBytes?: number;
  /** Text of the 413; absent: a common one. */
  readonly tooLarge?: string;
  readonly summary: string;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  /** Instead of `body`, where the bytes count. */
  readonly rawBody?: RawBody;
  readonly answer: Answer;
  /** Besides the mistakes of callers: another way to answer, or what can go wrong on our side or behind us. */
  readonly faults?: Faults;
  /** Runs before query and body are looked at: an unknown name is 404, whatever else is wrong. */
  prepare?(params: Params): void;
  /** Answers with what becomes JSON, `JsonText`, undefined (no content), or has sent by itself. */
  handle(call: Call): unknown;
}

interface TypedRoute<Path extends string, Query extends z.ZodType, Body extends z.ZodType> extends Omit<
  Route,
  "path" | "query" | "body" | "prepare" | "handle"
> {
  readonly path: Path;
  readonly query?: Query;
  readonly body?: Body;
  prepare?(params: Params<Path>): void;
  handle(call: Call<z.output<Query>, z.output<Body>, Path>): unknown;
}

/** Ties the pattern and the schemas of a route to the types that its handler sees. */
export function route<
  const Path extends string,
  Query extends z.ZodType = z.ZodUnknown,
  Body extends z.ZodType = z.ZodUnknown,
>(typed: TypedRoute<Path, Query, Body>): Route {
  return typed; // the handler only ever sees what the schemas put out
}

/** Text that is JSON already. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export const DONE: Answer = { status: 204, description: "Done" };
