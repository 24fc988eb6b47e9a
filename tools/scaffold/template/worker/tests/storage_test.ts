/**
 * The storages' contract on the stores that need no server.
 *
 * @module
 */
import { forTests } from "../container.ts";
import { testSampleRecordStorage } from "./contract.ts";

testSampleRecordStorage(":memory:", () => forTests());
