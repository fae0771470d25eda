import type { LibraryTls } from "#core/tls-recipe.ts";
import { SslClients, SslHandle } from "#platform/linux/ssl-client.ts";
import type { SslTickets } from "#platform/linux/ssl-tickets.ts";
import { ServerCheck } from "#transport/tls/server-check.ts";

/** Of so many nodes sessions are kept, each of them some kilobytes. */
const MOST_NODES = 64;

/** What a thread knows of the server of a node. */
interface NodeTls {
  readonly check: ServerCheck;
  /** Null: each handshake has to show the chain. */
  readonly tickets: SslTickets | null;
}

/** TLS to the servers of nodes that one thread dials. It has no event loop that would free what is collected. */
export class NodeTlsTable {
  /** The one that was dialled last stands last. */
  readonly #nodes = new Map<string, NodeTls>();
  /** Opened with the first node; null where it cannot be had. */
  #clients: SslClients | null | undefined;

  /** The library's object of a connection that is to be begun. Zero: it cannot be had. */
  connect(recipe: LibraryTls, fd: number): bigint {
    const clients = this.#library();
    if (clients === null) return 0n;
    const { tickets } = this.#of(recipe, clients);
    const { context, sni: serverName, alpn } = recipe;
    return clients.connect(new SslHandle(context), { fd, serverName, alpn, readAhead: true, tickets });
  }

  /** Its context is kept until as many calls of `release`. False: it cannot be. */
  hold({ context }: LibraryTls): boolean {
    return this.#library()?.hold(new SslHandle(context)) === true;
  }

  release({ context }: LibraryTls): void {
    this.#library()?.release(new SslHandle(context));
  }

  /** Of a handshake that is done. */
  isRight(recipe: LibraryTls, object: bigint): boolean {
    const clients = this.#library();
    if (clients === null) return false;
    try {
      return this.#of(recipe, clients).check.refusal(object) === null;
    } catch {
      return false; // the certificate cannot be parsed
    }
  }

  /** For the session of a connection whose server was found to be the right one. */
  ticketsOf(recipe: LibraryTls): SslTickets | null {
    const clients = this.#library();
    return clients === null ? null : this.#of(recipe, clients).tickets;
  }

  #library(): SslClients | null {
    if (this.#clients === undefined) this.#clients = SslClients.open();
    return this.#clients;
  }

  #of({ id, server }: LibraryTls, clients: SslClients): NodeTls {
    const node = this.#nodes.get(id) ?? newNode(server, clients);
    this.#nodes.delete(id);
    this.#nodes.set(id, node);
    if (this.#nodes.size > MOST_NODES) this.#forgetOldest();
    return node;
  }

  #forgetOldest(): void {
    const [oldest] = this.#nodes;
    if (oldest === undefined) return;
    this.#nodes.delete(oldest[0]);
    oldest[1].tickets?.close();
  }
}

function newNode(server: LibraryTls["server"], clients: SslClients): NodeTls {
  const check = new ServerCheck(clients, server);
  return { check, tickets: check.belief === "pin" ? null : clients.makeTickets() };
}
