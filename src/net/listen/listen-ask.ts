/** What to listen on. */
import type { Ip } from "#core/session.ts";

/** What to listen on. Two asks with the same `key` get the same kernel socket. */
export interface ListenAsk {
  readonly ip: Ip;
  readonly port: number;
  /** Keeps asks for port 0 of different listeners apart. */
  readonly owner: string;
  /** Sets options on the new descriptor before anything arrives (mark); throws where the system cannot. */
  readonly configure?: (fd: number) => void;
  /** It is a DNS server, and relays no connection. */
  readonly servesDns?: boolean;
}
