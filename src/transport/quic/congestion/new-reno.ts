/** NewReno (RFC 9002 §7.3). */
import type { AckSample } from "./congestion.ts";
import { LossBased } from "./loss-based.ts";

export class NewReno extends LossBased {
  protected avoid({ ackedBytes }: AckSample): void {
    this.window += (this.datagramBytes * ackedBytes) / this.window;
  }

  protected reduce(): void {
    this.window *= 0.5;
  }
}
