import type { TlsRecipe } from "./tls-recipe.ts";

/** By what the wire to the server of a node is begun, on whatever thread: every worker has a copy. */
export interface WireRecipe {
  /** The name of a beginning in `protocols/begin-wire.ts`. */
  readonly protocol: string;
  /** Plain data, which that protocol alone reads. */
  readonly settings: object;
  /** What lies between the socket and that wire; absent: nothing does. */
  readonly tls?: TlsRecipe;
}
