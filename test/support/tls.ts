/** TLS as tests hand it to what they open. The library is loaded when one of them speaks TLS. */
import { TlsLibrary } from "#platform/tls.ts";
import { makeTlsProvider } from "#transport/tls/provider.ts";

export const tlsLibrary = new TlsLibrary();
/** The library on kernel sockets, `node:tls` elsewhere. */
export const tlsProvider = makeTlsProvider(() => tlsLibrary.native);
/** `node:tls` alone. */
export const portableTls = makeTlsProvider(() => null, { allowsQuic: false });
