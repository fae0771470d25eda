/** `GET /api/svc/update`. */
export interface UpdateView {
  /** The version that runs. */
  readonly version: string;
  readonly configured: boolean;
  readonly by_controller: boolean;
}

/** `POST /api/svc/update/check`. */
export interface Offered {
  readonly version: string;
  readonly age: "older" | "same" | "newer" | "unknown";
}
