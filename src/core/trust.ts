import type { SecureContext, SecureContextOptions } from "node:tls";

/** Which authorities the TLS clients of one configuration believe. */
export interface Trust {
  /**
   * For one end's own certificate and settings. Throws what the library throws. May be the same object for the same
   * options. A connection that verifies nothing, or a pin, needs it as well: it holds the settings.
   */
  context(options: SecureContextOptions): SecureContext;
  /** All of them, each a certificate in PEM, for who does not go through `node:tls`. */
  authorities(): readonly string[];
}
