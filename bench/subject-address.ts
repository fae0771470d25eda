/** Where a measured program is reached, and how it is asked to lead on. */
export type Handshake = "socks" | "connect";

/** All have the same length. */
export const nameAt = (number: number): string => `host-${String(number).padStart(5, "0")}.names.test`;

/** Where a subject listens. `to`: how it is asked for a port of the loopback; null: it leads to one by itself. */
export interface SubjectAddress {
  /** Absent: the loopback's. */
  readonly host?: string;
  readonly port: number;
  readonly to: {
    readonly by: Handshake;
    readonly port: number;
    /** Another address of 127.0.0.0/8 for each connection, none twice for as long as there are any. */
    readonly isNew?: boolean;
    /** By SOCKS: in turn one of so many names, `nameAt` by number, instead of an address. */
    readonly names?: number;
  } | null;
}
