import { testCache } from "../../tests/contracts/cache.ts";
import { FakeClock } from "../core/fake_clock.ts";
import { MemoryCache } from "./memory_cache.ts";

testCache("MemoryCache", () => {
  const clock = new FakeClock();
  return Promise.resolve({
    cache: new MemoryCache(clock),
    advance: (ms: number) => clock.tick(ms),
    close: () => Promise.resolve(),
  });
});
