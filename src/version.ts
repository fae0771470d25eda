declare const WEIR_BUILD: string | undefined;

/** The build's identifier, put in by the bundler and equal to the build's `version.txt`; a checkout says `dev`. Not a semantic version. */
export const VERSION: string = typeof WEIR_BUILD === "string" ? WEIR_BUILD : "dev";

/** One line; front ends of the ecosystem take the third word as the version. */
export function versionLine(): string {
  return `Weir Meta ${VERSION} ${process.platform} ${process.arch} with node ${process.version}`;
}
