import type { CachesControl } from "#core/control.ts";
import { ApiError, StoreError } from "#core/errors.ts";
import { DONE, route, type Route } from "#api/route.ts";

export function cacheRoutes(caches: CachesControl): readonly Route[] {
  return [
    route({
      method: "POST",
      scope: "operate",
      path: "/cache/fakeip/flush",
      summary: "Forget every fake address; nothing without fake-IP",
      answer: DONE,
      async handle() {
        try {
          await caches.flushFakeIp();
        } catch (error) {
          if (error instanceof StoreError) throw new ApiError(400, error.message, { cause: error });
          throw error;
        }
      },
    }),
    route({
      method: "POST",
      scope: "operate",
      path: "/cache/dns/flush",
      summary: "Forget every cached DNS answer",
      answer: DONE,
      handle: () => caches.flushDns(),
    }),
  ];
}
