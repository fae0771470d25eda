import type { Ip, Network } from "./session.ts";

/** Which addresses a client may be connected to. Asked of every address that is dialled for it, after resolution. */
export interface Reach {
  /** Why it may not, for people; null: it may. Synchronous, never throws. */
  refusal(network: Network, ip: Ip, port: number): string | null;
}
