import { testTopics } from "../../tests/contracts/topics.ts";
import { MemoryTopics } from "./memory_topics.ts";

testTopics("MemoryTopics", () => {
  const topics = new MemoryTopics();
  return Promise.resolve({ publisher: topics, subscriber: topics, close: () => topics.close() });
});
