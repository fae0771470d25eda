import type { SecureContext, SecureContextOptions } from "node:tls";

/** The certificate authorities that the TLS clients of one configuration trust. */
export interface Trust {
  /**
   * For one end's own certificate and settings. Throws what the library throws. May be the same object for the same
   * options. A connection that verifies nothing, or a pin, needs it as well: it holds the settings.
   */
  context(options: SecureContextOptions): SecureContext;
  /** All of them, each a certificate in PEM, for clients that do not use `node:tls`. */
  authorities(): readonly string[];
}
