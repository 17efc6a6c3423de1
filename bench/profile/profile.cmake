# trapline_profiled(TARGET...): built by what recorded runs of real programs took (README.md beside this), where the
# compiler is the one that recorded them. TRAPLINE_RECORD_PROFILE: builds what records.
option(TRAPLINE_RECORD_PROFILE "Build a trapline that counts what it does, for bench/profile/record" OFF)
set(trapline_profile_sources ${CMAKE_CURRENT_LIST_DIR})
set(trapline_profile_archive ${CMAKE_CURRENT_LIST_DIR}/gcc-12.2.tar.xz)

# Functions are found by the names of the files compiled together, which only TRAPLINE_TOGETHER makes; counts of another
# version are refused by the compiler.
set(trapline_profile_usable OFF)
if(TRAPLINE_TOGETHER AND NOT TRAPLINE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU
   AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.2 AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12.3)
  set(trapline_profile_usable ON)
endif()
if(TRAPLINE_RECORD_PROFILE AND NOT trapline_profile_usable)
  message(FATAL_ERROR "TRAPLINE_RECORD_PROFILE needs the preset release and GCC 12.2; this is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
endif()

if(trapline_profile_usable AND NOT TRAPLINE_RECORD_PROFILE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${trapline_profile_archive})
  file(SHA256 ${trapline_profile_archive} hash)
  string(SUBSTRING ${hash} 0 12 hash)  # another profile, another command: all is built again
  set(trapline_profile_directory ${CMAKE_BINARY_DIR}/profile/${hash})
  if(NOT EXISTS ${trapline_profile_directory})
    # GCC looks for each object's counts under its whole path. (Told of a prefix to leave out, it fails where the path
    # has another name by a symbolic link; so it just finds nothing.)
    set(extracted ${CMAKE_BINARY_DIR}/profile/extracted)
    file(REMOVE_RECURSE ${extracted})
    file(ARCHIVE_EXTRACT INPUT ${trapline_profile_archive} DESTINATION ${extracted})
    file(REAL_PATH ${CMAKE_BINARY_DIR} prefix)
    string(REPLACE "/" "#" prefix ${prefix})
    file(GLOB counts RELATIVE ${extracted} ${extracted}/*.gcda)
    foreach(name IN LISTS counts)
      file(RENAME ${extracted}/${name} "${extracted}/${prefix}#${name}")
    endforeach()
    file(RENAME ${extracted} ${trapline_profile_directory})
  endif()
endif()

function(trapline_profiled)
  foreach(target IN LISTS ARGN)
    if(TRAPLINE_RECORD_PROFILE)
      set(flags -fprofile-generate=${CMAKE_BINARY_DIR}/profile -fprofile-prefix-path=${CMAKE_BINARY_DIR} -fprofile-update=atomic)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${flags}>)
      target_link_options(${target} PUBLIC --coverage)
    elseif(trapline_profile_usable)
      # Code that has changed since is compiled as without a profile, and so is what was not run. Without -fprofile-correction
      # GCC warns of what is called and has no counts.
      set(flags -fprofile-use=${trapline_profile_directory} -fprofile-partial-training -fprofile-correction
        -Wno-missing-profile -Wno-coverage-mismatch)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${flags}>)
    endif()
  endforeach()
endfunction()
