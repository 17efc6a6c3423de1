#include "guest.h"

static void* OwnStack(void* argument) {
  char local;
  pthread_attr_t attributes;
  void* address;
  size_t size;
  size_t guard;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &address, &size);
  pthread_attr_getguardsize(&attributes, &guard);
  pthread_attr_destroy(&attributes);
  const bool inside = &local > (char*)address && &local < (char*)address + size;
  if (argument != NULL) return (void*)(intptr_t)(inside && address == argument);
  return (void*)(intptr_t)(inside && size == 256 * 1024 && guard == 16 * kPage);
}

int main(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  Fact(pthread_attr_setstacksize(&attributes, 1) == EINVAL, "a stack of one byte is EINVAL");
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  pthread_attr_setguardsize(&attributes, 16 * kPage);
  pthread_t thread;
  void* good;
  pthread_create(&thread, &attributes, OwnStack, NULL);
  pthread_join(thread, &good);
  Fact(good != NULL, "stack and guard size as asked");
  char* memory = Map(128 * 1024, PROT_READ | PROT_WRITE);
  pthread_attr_setstack(&attributes, memory, 128 * 1024);
  pthread_create(&thread, &attributes, OwnStack, memory);
  pthread_join(thread, &good);
  Fact(good != NULL, "thread ran on the program's own memory");
  Fact(pthread_getattr_np(pthread_self(), &attributes) == 0, "main's stack can be asked for");
  void* address;
  size_t size;
  pthread_attr_getstack(&attributes, &address, &size);
  Fact((char*)&size > (char*)address && (char*)&size < (char*)address + size, "main is on it");
  return Done();
}
