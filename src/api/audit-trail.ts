/** From a request that changes something to its entry in the audit log. */
import { randomUUID } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { AccessControl, Caller } from "#core/access.ts";
import type { AuditActor } from "#core/audit.ts";
import type { JsonValue } from "#core/control.ts";
import type { AuditNote, Route } from "./route.ts";

/** A value as it would be written: without members that are undefined. */
export function jsonValueOf(value: object): JsonValue {
  return JSON.parse(JSON.stringify(value));
}

/** What is read, and what asks for no credential, leaves no entry. */
export function isAudited({ method, scope, onlyReads }: Route): boolean {
  return onlyReads !== true && method !== "GET" && method !== "HEAD" && scope !== "open";
}

/** One request. The answer names it, so that an entry can be found for what a client has in its own log. */
export class AuditTrail {
  readonly #access: AccessControl;
  readonly #route: Route;
  readonly #request: FastifyRequest;
  readonly #id = randomUUID();
  #note: AuditNote = {};

  constructor(access: AccessControl, route: Route, request: FastifyRequest, reply: FastifyReply) {
    this.#access = access;
    this.#route = route;
    this.#request = request;
    reply.header("x-request-id", this.#id);
  }

  note(what: AuditNote): void {
    this.#note = { ...this.#note, ...what };
  }

  /** To be called once the change is made. */
  write(): Promise<void> {
    const { method, path } = this.#route;
    const params: Readonly<Record<string, unknown>> = { ...Object(this.#request.params) };
    return this.#access.record({
      actor: actorOf(this.#request.caller),
      from: originOf(this.#request),
      request: this.#id,
      action: `${method} ${path}`,
      target: Object.values(params).map(String).join("/"),
      ...this.#note,
    });
  }
}

function actorOf({ name, token }: Caller): AuditActor {
  return token === null ? { kind: "owner", name } : { kind: "token", name, id: token.id };
}

const MOST_CLAIM_CHARACTERS = 64;

/** The peer; behind it what a proxy on this machine says of the client, which only that proxy can vouch for. */
export function originOf({ raw, headers }: FastifyRequest): string {
  const peer = raw.socket.remoteAddress ?? "local socket";
  const claim = headers["x-forwarded-for"];
  const isNear = peer === "local socket" || peer === "::1" || /^(::ffff:)?127\./.test(peer);
  if (!isNear || claim === undefined) return peer;
  const shown = String(claim).replaceAll(/[^\da-f.:, ]/gi, "?");
  return `${peer} (for ${shown.slice(0, MOST_CLAIM_CHARACTERS)})`;
}
